/* What drivers/abi/adapter.c promises: prints one line a check, see drivers_abi.rs. */
#include <stdio.h>
#include <string.h>

#include "campaign_abi.h"
#include "drng.h"

static void print(const char *name, const unsigned char *bytes, size_t n)
{
    printf("%s ", name);
    for (size_t i = 0; i < n; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

static int counting(void *ctx, unsigned char *out, unsigned long long bits)
{
    unsigned char *next = ctx;

    for (unsigned long long i = 0; i < bits / 8; i++) {
        out[i] = (*next)++;
    }
    return bits == 8 ? -7 : 0;
}

int main(void)
{
    static const unsigned char seed[32] = {1, 2, 3};
    unsigned char drawn[40], apart[40], next = 0;
    DRNG_ctx before;

    fputs(campaign_meta(), stdout);
    printf("rejected %llu\n", campaign_rejected());

    printf("seed %d\n", campaign_seed(seed, sizeof seed));
    before = drng_algorithm;
    printf("drng %d\n", campaign_drng(seed, sizeof seed, apart, 160, 2));
    printf("untouched %d\n", memcmp(&before, &drng_algorithm, sizeof before) == 0);
    printf("draw %d\n", campaign_draw(drawn, 160));
    printf("draw %d\n", campaign_draw(drawn + 20, 160));
    printf("equal %d\n", memcmp(drawn, apart, sizeof drawn) == 0);

    campaign_random(counting, &next);
    printf("other %d\n", campaign_draw(drawn, 64));
    print("bytes", drawn, 8);
    printf("failing %d\n", campaign_draw(drawn, 8));
    campaign_random(NULL, NULL);
    printf("seed %d\n", campaign_seed(seed, sizeof seed));
    printf("restored %d\n", campaign_draw(drawn, 160));
    printf("equal %d\n", memcmp(drawn, apart, 20) == 0);
    printf("null seed %d\n", campaign_seed(NULL, 1));
    return 0;
}
