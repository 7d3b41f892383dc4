// Sums, maxima and running sums.
#include <math.h>
#include <stdint.h>
#include <omp.h>

// Sums of stretches first: one running sum of 2^26 numbers would lose its last digits.
void sum(float *out, const float *x, int64_t n) {
    enum { STRETCH = 16384 };
    double total = 0;
#pragma omp parallel for reduction(+ : total)
    for (int64_t at = 0; at < n; at += STRETCH) {
        int64_t end = at + STRETCH < n ? at + STRETCH : n;
        float part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = at; i < end; i++) part += x[i];
        total += part;
    }
    *out = (float)total;
}

void maximum(float *out, const float *x, int64_t n) {
    float largest = -INFINITY;
#pragma omp parallel for simd reduction(max : largest)
    for (int64_t i = 0; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    *out = largest;
}

// The largest value first, then the first place where it stands.
void argmax(int32_t *out, const float *x, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float largest = -INFINITY;
#pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < cols; i++) largest = row[i] > largest ? row[i] : largest;
        int64_t at = 0;
        while (at < cols - 1 && row[at] != largest) at++;
        out[r] = (int32_t)at;
    }
}

typedef float floats __attribute__((vector_size(32)));
typedef int32_t places __attribute__((vector_size(32)));

// Eight neighbours at a time: three shifts and additions in registers, and the carry.
static float scan(float *out, const float *x, int64_t n, float carry) {
    const floats zero = {};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        floats v;
        __builtin_memcpy(&v, x + i, 32);
        v += __builtin_shuffle(v, zero, (places){8, 0, 1, 2, 3, 4, 5, 6});
        v += __builtin_shuffle(v, zero, (places){8, 8, 0, 1, 2, 3, 4, 5});
        v += __builtin_shuffle(v, zero, (places){8, 8, 8, 8, 0, 1, 2, 3});
        float last = v[7];
        v += carry;
        __builtin_memcpy(out + i, &v, 32);
        carry += last;
    }
    for (; i < n; i++) out[i] = carry += x[i];
    return carry;
}

// Stretches that stay in the cache: every thread sums its part first, if there are several.
void cumsum(float *out, const float *x, int64_t n) {
    int threads = omp_get_max_threads();
    float sums[threads + 1];
    sums[0] = 0;
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num();
        int64_t start = n * t / threads, end = n * (t + 1) / threads;
        if (threads > 1) {
            float total = 0;
#pragma omp simd reduction(+ : total)
            for (int64_t i = start; i < end; i++) total += x[i];
            sums[t + 1] = total;
#pragma omp barrier
        }
        float carry = 0;
        for (int i = 0; i <= t; i++) carry += sums[i];
        scan(out + start, x + start, end - start, carry);
    }
}

void cumsum_rows(float *out, const float *x, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) scan(out + r * cols, x + r * cols, cols, 0);
}
