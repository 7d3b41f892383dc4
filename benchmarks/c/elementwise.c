// Element by element: memory is the limit, but for the arithmetic of gelu and Philox.
#include <stdint.h>
#include "vector_maths.h"

void add(float *out, const float *x, const float *y, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i];
}

void triad(float *out, const float *x, const float *y, float s, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) out[i] = x[i] + s * y[i];
}

void gelu(float *out, const float *x, const float *y, const float *z, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) {
        float v = x[i], inner = 0.7978845608f * (v + 0.044715f * v * v * v);
        out[i] = 0.5f * v * (1.0f + vector_tanh(inner)) * y[i] + z[i];
    }
}

typedef uint64_t words __attribute__((vector_size(64)));
typedef int32_t ints __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(32)));
#if defined(__AVX512F__)
#include <immintrin.h>
static inline words multiply(words a, words b) { return (words)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
#else
static inline words multiply(words a, words b) { return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF); }
#endif

// Philox 4x32-10 with the element's index as counter, eight at a time; the first of its four words decides. The
// words lie in the low halves of 64-bit lanes; what is in the high halves does not count.
void dropout(float *out, const float *x, float p, int64_t seed, int64_t n) {
    const float scale = 1.0f / (1.0f - p);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i += 8) {
        words c0 = (words){0, 1, 2, 3, 4, 5, 6, 7} + (uint64_t)i, c1 = {}, c2 = {}, c3 = {};
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma GCC unroll 10
        for (int r = 0; r < 10; r++) {
            words a = multiply(c0, (words){} + 0xD2511F53u), b = multiply(c2, (words){} + 0xCD9E8D57u);
            c0 = (b >> 32) ^ c1 ^ k0, c2 = (a >> 32) ^ c3 ^ k1;
            c1 = b, c3 = a;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        ints drawn = __builtin_convertvector(c0, ints);
        floats uniform = __builtin_convertvector(drawn ^ (drawn >> 31), floats) * 4.6566127342e-10f;
        floats result = {};
        int64_t count = n - i < 8 ? n - i : 8;
        if (count == 8) memcpy(&result, x + i, 32);
        else memcpy(&result, x + i, 4 * count);
        result = (floats)((ints)(result * scale) & (uniform > p));
        if (count == 8) memcpy(out + i, &result, 32);
        else memcpy(out + i, &result, 4 * count);
    }
}
