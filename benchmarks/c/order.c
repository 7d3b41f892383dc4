// Order statistics: the largest of each row, a sort, a histogram.
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <omp.h>

// The k largest of each row, descending: a number joins the list only if it passes the list's last, and 16 are
// compared with that at once.
void topk(float *out, const float *x, int64_t rows, int64_t cols, int64_t k) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        float *best = out + r * k;
        for (int64_t i = 0; i < k; i++) best[i] = -INFINITY;
        for (int64_t at = 0; at < cols; at += 16) {
            int64_t end = at + 16 < cols ? at + 16 : cols;
            int any = 0;
#pragma omp simd reduction(| : any)
            for (int64_t i = at; i < end; i++) any |= row[i] > best[k - 1];
            if (!any) continue;
            for (int64_t i = at; i < end; i++) {
                float v = row[i];
                if (v <= best[k - 1]) continue;
                int64_t place = k - 1;
                for (; place > 0 && best[place - 1] < v; place--) best[place] = best[place - 1];
                best[place] = v;
            }
        }
    }
}

static inline uint32_t key_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
}

// Radix sort of floats: three passes over 11 bits each, by one thread. `work` has room for 2 * n numbers.
void sort(float *out, const float *x, uint32_t *work, int64_t n) {
    enum { BITS = 11, BINS = 1 << BITS };
    static int64_t counts[3][BINS];
    uint32_t *from = work, *to = work + n;
    memset(counts, 0, sizeof counts);
    for (int64_t i = 0; i < n; i++) {
        uint32_t key = from[i] = key_of(x[i]);
        counts[0][key % BINS]++, counts[1][key >> BITS & (BINS - 1)]++, counts[2][key >> 2 * BITS]++;
    }
    for (int pass = 0; pass < 3; pass++) {
        int64_t place = 0;
        for (int b = 0; b < BINS; b++) {
            int64_t count = counts[pass][b];
            counts[pass][b] = place;
            place += count;
        }
        for (int64_t i = 0; i < n; i++) to[counts[pass][from[i] >> pass * BITS & (BINS - 1)]++] = from[i];
        uint32_t *swapped = from;
        from = to, to = swapped;
    }
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = from[i] ^ (((from[i] >> 31) - 1) | 0x80000000u);
        memcpy(out + i, &bits, 4);
    }
}

// Four private histograms a thread: neighbours of the same value do not wait for each other.
void histogram(int32_t *out, const uint8_t *x, int64_t n) {
    memset(out, 0, 256 * 4);
#pragma omp parallel
    {
        uint32_t bins[4][256] = {};
#pragma omp for
        for (int64_t i = 0; i < n / 8; i++) {
            uint64_t word;
            memcpy(&word, x + 8 * i, 8);
            for (int b = 0; b < 8; b++) bins[b % 4][word >> 8 * b & 255]++;
        }
#pragma omp single
        for (int64_t i = n / 8 * 8; i < n; i++) bins[0][x[i]]++;
#pragma omp critical
        for (int b = 0; b < 256; b++) out[b] += bins[0][b] + bins[1][b] + bins[2][b] + bins[3][b];
    }
}
