/* The counter of rejected draws of a candidate, as adapter.c expects it. */
extern unsigned long long fixture_rejected;
unsigned long long fixture_rejected = 42;
