/*
 * Runs one DOVE instance under a memory checker that takes secret bytes for
 * undefined ones, and so reports each branch and each index made of a secret.
 *
 * usage: dove_ct find           prints the first message whose signature needs a
 *                               second draw; run plainly
 *        dove_ct secret NUMBER  key generation and signing of that message with
 *                               all secrets undefined; run under the checker
 *
 * Secret are the state of the DRNG, and every byte of the secret key. What the
 * candidate publishes it must declassify itself (-DDOVE_CT_TEST): verification
 * runs on the public key and the signature as they come out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

#include "SIG_AlgorithmInstance.h"
#include "drng.h"
#include "sign.h"

#define M_LEN 64

DRNG_ctx drng_algorithm;

static unsigned char pk[DOVE_PK_BYTES], sk[DOVE_SK_BYTES], sn[DOVE_SIG_BYTES], m[M_LEN];

static void must(const char *what, int rc)
{
    if (rc != 0) {
        fprintf(stderr, "%s returned %d\n", what, rc);
        exit(1);
    }
}

static void keygen(int secret)
{
    unsigned long long pk_len = sizeof pk, sk_len = sizeof sk;
    unsigned char seed[64];

    memset(seed, 1, sizeof seed);
    init_random_number(&drng_algorithm, seed, sizeof seed);
    if (secret)
        (void)VALGRIND_MAKE_MEM_UNDEFINED(&drng_algorithm, sizeof drng_algorithm);
    must("sig_keygen", sig_keygen(pk, &pk_len, sk, &sk_len));
    if (secret)
        (void)VALGRIND_MAKE_MEM_UNDEFINED(sk, sizeof sk);
}

static void sign(int number)
{
    unsigned long long sn_len = sizeof sn;

    memset(m, 0, sizeof m);
    m[0] = (unsigned char)(number & 0xff);
    m[1] = (unsigned char)(number >> 8 & 0xff);
    must("sig_sign", sig_sign(sk, sizeof sk, m, sizeof m, sn, &sn_len));
}

static void find(void)
{
    int number = -1;

    keygen(0);
    while (dove_rejected_draws == 0 && number < 0xffff)
        sign(++number);
    printf("%d\n", number);
}

static void secret(int number)
{
    keygen(1);
    sign(number);
    must("sig_verify", sig_verify(pk, sizeof pk, sn, sizeof sn, m, sizeof m));
    printf("valgrind=%d rejected=%llu errors=%d\n", (int)RUNNING_ON_VALGRIND != 0,
           dove_rejected_draws, (int)VALGRIND_COUNT_ERRORS);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "find") == 0)
        find();
    else if (argc == 3 && strcmp(argv[1], "secret") == 0)
        secret(atoi(argv[2]));
    else
        return 2;
    return 0;
}
