// Lanes that part ways: escape times of the Mandelbrot set.
#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>

// 64 neighbours in four registers: a chain of dependent operations alone would leave the units idle.
static void escape(int32_t *out, float left, float dx, float y, int64_t steps) {
    enum { N = 4 };
    __m512 cx[N], zx[N], zy[N], cy = _mm512_set1_ps(y), four = _mm512_set1_ps(4);
    __m512i counts[N];
    for (int v = 0; v < N; v++) {
        __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        __m512 at = _mm512_cvtepi32_ps(_mm512_add_epi32(lanes, _mm512_set1_epi32(16 * v)));
        cx[v] = _mm512_fmadd_ps(at, _mm512_set1_ps(dx), _mm512_set1_ps(left));
        zx[v] = zy[v] = _mm512_setzero_ps();
        counts[v] = _mm512_setzero_si512();
    }
    for (int64_t step = 0; step < steps; step++) {
        int live = 0;
#pragma GCC unroll 4
        for (int v = 0; v < N; v++) {
            __m512 xx = _mm512_mul_ps(zx[v], zx[v]), yy = _mm512_mul_ps(zy[v], zy[v]);
            __mmask16 inside = _mm512_cmp_ps_mask(_mm512_add_ps(xx, yy), four, _CMP_LE_OQ);
            counts[v] = _mm512_mask_add_epi32(counts[v], inside, counts[v], _mm512_set1_epi32(1));
            zy[v] = _mm512_fmadd_ps(_mm512_add_ps(zx[v], zx[v]), zy[v], cy);
            zx[v] = _mm512_add_ps(_mm512_sub_ps(xx, yy), cx[v]);
            live |= inside;
        }
        if (!live) break;
    }
    for (int v = 0; v < N; v++) _mm512_storeu_si512(out + 16 * v, counts[v]);
}
#else
static void escape(int32_t *out, float left, float dx, float y, int64_t steps) {
    enum { N = 32 };
    for (int64_t half = 0; half < 64; half += N) {
        float zx[N] = {}, zy[N] = {};
        int32_t counts[N] = {}, live = 1;
        for (int64_t step = 0; step < steps && live; step++) {
            live = 0;
#pragma omp simd reduction(| : live)
            for (int v = 0; v < N; v++) {
                float xx = zx[v] * zx[v], yy = zy[v] * zy[v];
                int32_t inside = xx + yy <= 4;
                counts[v] += inside;
                zy[v] = 2 * zx[v] * zy[v] + y;
                zx[v] = xx - yy + (left + dx * (half + v));
                live |= inside;
            }
        }
        for (int v = 0; v < N; v++) out[half + v] = counts[v];
    }
}
#endif

// A lane that has left keeps computing: what it then holds is infinite or NaN and is never inside again.
void mandelbrot(int32_t *out, float left, float top, float dx, float dy, int64_t n, int64_t steps) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t r = 0; r < n; r++) {
        for (int64_t c = 0; c < n; c += 64) {
            int32_t counts[64];
            escape(counts, left + dx * c, dx, top + dy * r, steps);
            for (int64_t i = 0; i < 64 && c + i < n; i++) out[r * n + c + i] = counts[i];
        }
    }
}
