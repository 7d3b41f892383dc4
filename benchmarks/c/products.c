// Products of matrices with narrow operands; float32 has BLAS behind NumPy and PyTorch.
#include <stdint.h>
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

typedef int32_t words __attribute__((vector_size(64)));
enum { ROWS = 8 };

// Each of the 16 sums gets two products of neighbouring int16.
static inline words multiply_add(words sum, const int16_t *columns, uint32_t pair) {
#if defined(__AVX512VNNI__)
    return (words)_mm512_dpwssd_epi32((__m512i)sum, _mm512_loadu_si512(columns), _mm512_set1_epi32((int)pair));
#elif defined(__AVX512BW__)
    __m512i products = _mm512_madd_epi16(_mm512_loadu_si512(columns), _mm512_set1_epi32((int)pair));
    return sum + (words)products;
#else
    int16_t first = (int16_t)pair, second = (int16_t)(pair >> 16);
    for (int l = 0; l < 16; l++) sum[l] += first * columns[2 * l] + second * columns[2 * l + 1];
    return sum;
#endif
}

// c = a @ b for int8 a[m][k], b[k][n]. b is packed as int16 so that two neighbours in k lie together, which is what
// pmaddwd multiplies and adds; 8 rows by 32 columns of c stay in registers.
void matmul_int8(int32_t *c, const int8_t *a, const int8_t *b, int16_t *packed, int64_t m, int64_t n, int64_t k) {
    int64_t pairs = (k + 1) / 2;
#pragma omp parallel for
    for (int64_t j = 0; j < n; j += 32)
        for (int64_t p = 0; p < pairs; p++)
            for (int64_t l = 0; l < 32; l++)
                for (int64_t q = 0; q < 2; q++)
                    packed[j * 2 * pairs + p * 64 + 2 * l + q] =
                        j + l < n && 2 * p + q < k ? b[(2 * p + q) * n + j + l] : 0;
#pragma omp parallel for
    for (int64_t j = 0; j < n; j += 32)
        for (int64_t i = 0; i < m; i += ROWS) {
            words sums[ROWS][2] = {};
            const int16_t *columns = packed + j * 2 * pairs;
            const int8_t *row[ROWS];
            for (int r = 0; r < ROWS; r++) row[r] = a + (i + r < m ? i + r : m - 1) * k;
            for (int64_t p = 0; p < pairs; p++)
#pragma GCC unroll 8
                for (int r = 0; r < ROWS; r++) {
                    int16_t second = 2 * p + 1 < k ? row[r][2 * p + 1] : 0;
                    uint32_t pair = (uint16_t)row[r][2 * p] | (uint32_t)(uint16_t)second << 16;
                    sums[r][0] = multiply_add(sums[r][0], columns + p * 64, pair);
                    sums[r][1] = multiply_add(sums[r][1], columns + p * 64 + 32, pair);
                }
            for (int r = 0; r < ROWS && i + r < m; r++)
                for (int64_t l = 0; l < 32 && j + l < n; l++) c[(i + r) * n + j + l] = sums[r][l / 16][l % 16];
        }
}

// out[i] = scale[i] * sum of w[i][:] * x
void gemv_int8(float *out, const int8_t *w, const float *scale, const float *x, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const int8_t *row = w + r * cols;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < cols; i++) sum += (float)row[i] * x[i];
        out[r] = sum * scale[r];
    }
}
