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

// Philox 4x32-10 with the element's index as counter; the first of its four words decides.
void dropout(float *out, const float *x, float p, int64_t seed, int64_t n) {
    const float scale = 1.0f / (1.0f - p);
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t c0 = (uint32_t)i, c1 = 0, c2 = 0, c3 = 0, k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int r = 0; r < 10; r++) {
            uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
            uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)b, c3 = (uint32_t)a, c0 = n0, c2 = n2;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        int32_t word = (int32_t)c0;
        float uniform = (float)(word < 0 ? ~word : word) * 4.6566127342e-10f;
        out[i] = uniform > p ? x[i] * scale : 0.0f;
    }
}
