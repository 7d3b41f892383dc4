// Patterns of access: neighbours, rows by index, transposition, a sparse matrix.
#include <stdint.h>
#include <string.h>

// out[rows][cols] from x[rows + 2][cols + 2] and nine weights.
void stencil(float *out, const float *x, const float *w, int64_t rows, int64_t cols) {
    const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7], w8 = w[8];
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * (cols + 2), *b = a + cols + 2, *c = b + cols + 2;
        float *to = out + r * cols;
#pragma omp simd
        for (int64_t i = 0; i < cols; i++)
            to[i] = w0 * a[i] + w1 * a[i + 1] + w2 * a[i + 2] + w3 * b[i] + w4 * b[i + 1] + w5 * b[i + 2] +
                    w6 * c[i] + w7 * c[i + 1] + w8 * c[i + 2];
    }
}

void gather(float *out, const float *table, const int32_t *index, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) memcpy(out + r * cols, table + index[r] * cols, 4 * cols);
}

// Tiles of 16 x 64: whole cache lines are written, and the lines that are read stay in the cache meanwhile.
void transpose(float *out, const float *x, int64_t n) {
    enum { READ = 64, WRITE = 16 };
#pragma omp parallel for collapse(2)
    for (int64_t i = 0; i < n; i += READ)
        for (int64_t j = 0; j < n; j += WRITE) {
            int64_t rows = i + READ < n ? i + READ : n, cols = j + WRITE < n ? j + WRITE : n;
            for (int64_t c = j; c < cols; c++)
                for (int64_t r = i; r < rows; r++) out[c * n + r] = x[r * n + c];
        }
}

void spmv(float *out, const float *values, const int32_t *columns, const int32_t *starts, const float *x,
          int64_t rows) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum) simdlen(8)
        for (int64_t i = starts[r]; i < starts[r + 1]; i++) sum += values[i] * x[columns[i]];
        out[r] = sum;
    }
}
