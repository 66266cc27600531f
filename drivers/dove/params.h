/*
 * The parameter sets of DOVE, and the sizes that follow from them.
 *
 * A compilation chooses one set:
 *   -DDOVE_CLASSIC or -DDOVE_PKC_SKC   expanded keys, or compressed ones
 *   -DDOVE_LEVEL=128, 256 or 512       security level in bits
 *
 * Source: [DOVE], the specification of NGCC Round 1 submission sign-09 ("Double
 * Oil and Vinegar"). The files of this folder cite it by the names of its
 * objects: T, A_k, B_k, C_k, P_i2, P_i3, L, t, w, x_k, y_k, v, z.
 *
 * Elements are bytes, elements of GF(2^8). A matrix is row-major; an upper
 * triangular one is stored packed: for each row i, the elements (i,j) with j >= i.
 */
#ifndef DOVE_PARAMS_H
#define DOVE_PARAMS_H

#if defined(DOVE_CLASSIC) == defined(DOVE_PKC_SKC)
#error "define exactly one of DOVE_CLASSIC and DOVE_PKC_SKC"
#endif

#ifndef DOVE_LEVEL
#error "define DOVE_LEVEL as 128, 256 or 512"
#elif DOVE_LEVEL == 128
#define DOVE_LEVEL_NAME "128"
#define DOVE_O 44 /* oil variables = equations (o = m) */
#define DOVE_V 68 /* vinegar variables */
#define DOVE_L 7 /* base matrices, ceil(sqrt(DOVE_O)) */
#define DOVE_SEED_SK 24 /* bytes of the secret seed, and of the salt */
#elif DOVE_LEVEL == 256
#define DOVE_LEVEL_NAME "256"
#define DOVE_O 96
#define DOVE_V 160
#define DOVE_L 10
#define DOVE_SEED_SK 40
#elif DOVE_LEVEL == 512
#define DOVE_LEVEL_NAME "512"
#define DOVE_O 216
#define DOVE_V 360
#define DOVE_L 15
#define DOVE_SEED_SK 72
#else
#error "DOVE_LEVEL must be 128, 256 or 512"
#endif

#define DOVE_SALT DOVE_SEED_SK
#define DOVE_SEED_PK 16 /* bytes of the public seed, every set */
#define DOVE_DRAWS 256 /* vinegar draws before signing gives up */

/* Bytes of one matrix. */
#define DOVE_T_BYTES (DOVE_V * DOVE_O)
#define DOVE_A_BYTES (DOVE_V * (DOVE_V + 1) / 2) /* packed upper, v x v */
#define DOVE_B_BYTES (DOVE_O * DOVE_V)
#define DOVE_C_BYTES (DOVE_V * DOVE_O)
#define DOVE_P2_BYTES (DOVE_V * DOVE_O)
#define DOVE_P3_BYTES (DOVE_O * (DOVE_O + 1) / 2) /* packed upper, o x o */

/* A signature is (v + T z) || z || salt. */
#define DOVE_SIG_BYTES (DOVE_V + DOVE_O + DOVE_SALT)

/* The secret seed expands to seed_pk || T. */
#define DOVE_SECRET_BYTES (DOVE_SEED_PK + DOVE_T_BYTES)

#ifdef DOVE_CLASSIC
/* pk = seed_pk || A_k, k < l || P_i2, i < m || P_i3, i < m
 * sk = seed_sk || seed_pk || T || A_k || B_k || C_k || P_i2 */
#define DOVE_VARIANT "classic"
#define DOVE_PK_A DOVE_SEED_PK
#define DOVE_PK_P2 (DOVE_PK_A + DOVE_L * DOVE_A_BYTES)
#define DOVE_PK_P3 (DOVE_PK_P2 + DOVE_O * DOVE_P2_BYTES)
#define DOVE_PK_BYTES (DOVE_PK_P3 + DOVE_O * DOVE_P3_BYTES)
#define DOVE_SK_SEED_PK DOVE_SEED_SK
#define DOVE_SK_T (DOVE_SK_SEED_PK + DOVE_SEED_PK)
#define DOVE_SK_A (DOVE_SK_T + DOVE_T_BYTES)
#define DOVE_SK_B (DOVE_SK_A + DOVE_L * DOVE_A_BYTES)
#define DOVE_SK_C (DOVE_SK_B + DOVE_L * DOVE_B_BYTES)
#define DOVE_SK_P2 (DOVE_SK_C + DOVE_L * DOVE_C_BYTES)
#define DOVE_SK_BYTES (DOVE_SK_P2 + DOVE_O * DOVE_P2_BYTES)
#else
/* pk = seed_pk || P_i3, i < m;  sk = seed_sk */
#define DOVE_VARIANT "pkc_skc"
#define DOVE_PK_P3 DOVE_SEED_PK
#define DOVE_PK_BYTES (DOVE_PK_P3 + DOVE_O * DOVE_P3_BYTES)
#define DOVE_SK_BYTES DOVE_SEED_SK
#endif

/* Return codes; 0 is success. The programme leaves -1 to -99 to a candidate,
 * and gives -1 of sig_verify its meaning; -4 and -5 belong to the helpers. */
#define DOVE_ERR_INVALID (-1) /* the signature does not verify */
#define DOVE_ERR_ARGUMENT (-2) /* a null pointer, or not the claimed length */
#define DOVE_ERR_MEMORY (-3) /* an allocation failed */
#define DOVE_ERR_XOF (-6) /* pseudoXOF returned an error */
#define DOVE_ERR_RANDOM (-7) /* get_random_number returned an error */
#define DOVE_ERR_DRAWS (-8) /* L was singular DOVE_DRAWS times */

#endif
