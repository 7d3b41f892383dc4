// Row by row: one or two passes over a row that stays in the first cache.
#include <stdint.h>
#include "vector_maths.h"

void softmax(float *out, const float *x, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float *to = out + r * cols, largest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < cols; i++) largest = row[i] > largest ? row[i] : largest;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < cols; i++) sum += to[i] = vector_exp(row[i] - largest);
        float scale = 1 / sum;
#pragma omp simd
        for (int64_t i = 0; i < cols; i++) to[i] *= scale;
    }
}

void layer_norm(float *out, const float *x, const float *w, const float *b, int64_t rows, int64_t cols, float eps) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float *to = out + r * cols, sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < cols; i++) sum += row[i];
        float mean = sum / cols;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < cols; i++) squares += (row[i] - mean) * (row[i] - mean);
        float scale = 1 / sqrtf(squares / cols + eps);
#pragma omp simd
        for (int64_t i = 0; i < cols; i++) to[i] = (row[i] - mean) * scale * w[i] + b[i];
    }
}

// partial has room for 2 * cols floats for each of `parts` groups of rows.
void layer_norm_backward(float *dx, float *dw, float *db, float *partial, const float *dy, const float *x,
                         const float *w, const float *mean, const float *rstd, int64_t rows, int64_t cols,
                         int64_t parts) {
#pragma omp parallel for
    for (int64_t p = 0; p < parts; p++) {
        float *pw = partial + 2 * p * cols, *pb = pw + cols;
        memset(pw, 0, 8 * cols);
        for (int64_t r = rows * p / parts; r < rows * (p + 1) / parts; r++) {
            const float *g = dy + r * cols, *row = x + r * cols;
            float *to = dx + r * cols, m = mean[r], s = rstd[r], c1 = 0, c2 = 0;
#pragma omp simd reduction(+ : c1, c2)
            for (int64_t i = 0; i < cols; i++) {
                float normed = (row[i] - m) * s, scaled = w[i] * g[i];
                c1 += normed * scaled;
                c2 += scaled;
                pw[i] += g[i] * normed;
                pb[i] += g[i];
            }
            c1 /= cols, c2 /= cols;
#pragma omp simd
            for (int64_t i = 0; i < cols; i++) to[i] = (w[i] * g[i] - (row[i] - m) * s * c1 - c2) * s;
        }
    }
    memset(dw, 0, 4 * cols);
    memset(db, 0, 4 * cols);
    for (int64_t p = 0; p < parts; p++) {
        const float *pw = partial + 2 * p * cols, *pb = pw + cols;
#pragma omp simd
        for (int64_t i = 0; i < cols; i++) dw[i] += pw[i], db[i] += pb[i];
    }
}

void rms_norm(float *out, const float *x, const float *w, int64_t rows, int64_t cols, float eps) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float *to = out + r * cols, squares = 0;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < cols; i++) squares += row[i] * row[i];
        float scale = 1 / sqrtf(squares / cols + eps);
#pragma omp simd
        for (int64_t i = 0; i < cols; i++) to[i] = row[i] * scale * w[i];
    }
}

// One pass over memory: each stretch of a row is read from there once, for its maximum, then from the first cache.
void cross_entropy(float *out, const float *x, const int32_t *labels, int64_t rows, int64_t cols) {
    enum { STRETCH = 2048 };
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float largest = -INFINITY, total = 0;
        for (int64_t at = 0; at < cols; at += STRETCH) {
            int64_t end = at + STRETCH < cols ? at + STRETCH : cols;
            float here = largest, sum = 0;
#pragma omp simd reduction(max : here)
            for (int64_t i = at; i < end; i++) here = row[i] > here ? row[i] : here;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = at; i < end; i++) sum += vector_exp(row[i] - here);
            total = (at ? total * vector_exp(largest - here) : 0) + sum;
            largest = here;
        }
        out[r] = logf(total) + largest - row[labels[r]];
    }
}
