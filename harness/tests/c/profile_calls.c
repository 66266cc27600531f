/*
 * Calls of wrapped functions with known counts, for drivers/abi/profile.c and the filled wrap.c.in. The argument
 * names the case; rows are printed as: row name in_bits out_bits calls. What they must be is in drivers_abi.rs.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign_abi.h"
#include "profile_functions.h"

static unsigned char in[512];

static unsigned long long print_rows(void)
{
    static campaign_profile_row rows[1024];
    const unsigned n = campaign_profile_rows(rows, 1024);
    unsigned long long ticks = 0;

    for (unsigned i = 0; i < n; i++) {
        printf("row %s %llu %llu %llu\n", campaign_profile_name(rows[i].fn), rows[i].in_bits, rows[i].out_bits,
               rows[i].calls);
        ticks += rows[i].ticks;
    }
    printf("overflow %llu\n", campaign_profile_overflow());
    return ticks;
}

static void shapes(void)
{
    unsigned char out[512];
    const unsigned long long start = campaign_profile_ticks();
    unsigned long long total;

    for (int i = 0; i < 3; i++) {
        if (mix(out, in, 8) != 8 || half(10) != 5) {
            puts("wrong: a wrapper changed a result");
        }
    }
    mix(out, in, 16);
    twice(out, in, 8);
    mix(out, in, 8);
    total = campaign_profile_ticks() - start;
    if (print_rows() > total) {
        puts("wrong: the rows hold more ticks than passed");
    }
    campaign_profile_reset();
    print_rows();
}

static void list(void)
{
    const unsigned n = campaign_profile_functions();

    for (unsigned i = 0; i < n; i++) {
        printf("%s %s %s\n", campaign_profile_symbol(i), campaign_profile_name(i), campaign_profile_group(i));
    }
    if (campaign_profile_name(n) != NULL || campaign_profile_symbol(n) != NULL || campaign_profile_group(n) != NULL) {
        puts("wrong: a function beyond the last");
    }
    printf("%s\n", campaign_profile_tick_source());
}

/* More shapes than the table has room for; a shape that is known goes on counting. */
static void overflow(void)
{
    static campaign_profile_row rows[4];
    unsigned char out[512];

    for (size_t n = 1; n <= 300; n++) {
        mix(out, in, n);
    }
    mix(out, in, 1);
    printf("rows %u overflow %llu\n", campaign_profile_rows(rows, 4), campaign_profile_overflow());
    for (unsigned i = 0; i < 4; i++) {
        printf("row %s %llu %llu %llu\n", campaign_profile_name(rows[i].fn), rows[i].in_bits, rows[i].out_bits,
               rows[i].calls);
    }
}

static void *caller(void *unused)
{
    unsigned char out[64];

    for (int i = 0; i < 5000; i++) {
        mix(out, in, 8);
        mix(out, in, (size_t)(i % 32));
        twice(out, in, 4);
    }
    return unused;
}

/* All threads meet each shape at about the same time: it must become one row. */
static void threads(void)
{
    pthread_t t[4];
    int started = 0;

    while (started < 4 && pthread_create(&t[started], NULL, caller, NULL) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(t[i], NULL);
    }
    print_rows();
}

static void cost(void)
{
    unsigned char out[8];

    mix(out, in, 8);
    if (campaign_profile_cost() != (campaign_profile_cost_inside() + 500) / 1000) {
        puts("wrong: two costs");
    }
    if (campaign_profile_cost_inside() != campaign_profile_cost_inside()) {
        puts("wrong: the cost is not kept");
    }
    print_rows();
}

#define BATCHES 501
#define CALLS 32

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * Prints the share of spin, in tenths of a percent, of a load that spends 30% of its work there, with the cost of the
 * wrapper taken out as campaign_abi.h says. The median of short batches: whatever else the machine does hits some
 * batches, and never the middle one.
 */
static void share(void)
{
    const double inside = (double)campaign_profile_cost_inside() / 1000;
    const double around = (double)campaign_profile_cost_around() / 1000;
    static double shares[BATCHES];

    for (int batch = 0; batch < BATCHES; batch++) {
        campaign_profile_row row;
        unsigned long long total, start;

        campaign_profile_reset();
        start = campaign_profile_ticks();
        for (int i = 0; i < CALLS; i++) {
            spin(30);
            rest(70);
        }
        total = campaign_profile_ticks() - start;
        if (campaign_profile_rows(&row, 1) != 1 || row.calls != CALLS) {
            puts("wrong: rows");
            return;
        }
        shares[batch] = ((double)row.ticks - CALLS * inside) / ((double)total - CALLS * around);
    }
    qsort(shares, BATCHES, sizeof *shares, ascending);
    printf("%.0f\n", 1000 * shares[BATCHES / 2]);
}

int main(int argc, char **argv)
{
    const char *name = argc == 2 ? argv[1] : "";

    if (strcmp(name, "shapes") == 0) {
        shapes();
    } else if (strcmp(name, "list") == 0) {
        list();
    } else if (strcmp(name, "overflow") == 0) {
        overflow();
    } else if (strcmp(name, "threads") == 0) {
        threads();
    } else if (strcmp(name, "cost") == 0) {
        cost();
    } else if (strcmp(name, "share") == 0) {
        share();
    } else {
        fprintf(stderr, "no such case: %s\n", name);
        return 2;
    }
    return 0;
}
