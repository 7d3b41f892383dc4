// What the machine can do: arithmetic from registers, and bandwidth. Each function returns a rate per second.
#include <omp.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif
typedef float floats __attribute__((vector_size(VECTOR)));
// The constraint of a vector register in inline assembly.
#if defined(__x86_64__)
#define REGISTER "v"
#else
#define REGISTER "w"
#endif
enum { CHAINS = 12, ROUNDS = 4000000 };

// Twelve chains of dependent operations hide each other's latency. They are twelve variables, not an array, so that
// they stay in registers.
#define TWELVE(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

double peak_fp32(void) {
    double start = omp_get_wtime();
#pragma omp parallel
    {
        const floats a = (floats){} + 0.999f, b = (floats){} + 0.001f;
#define START(c) floats x##c = (floats){} + c##.0f;
#define STEP(c) x##c = x##c * a + b; __asm__("" : "+" REGISTER (x##c));
#define KEEP(c) __asm__ volatile("" ::REGISTER(x##c));
        TWELVE(START)
        for (int i = 0; i < ROUNDS; i++) { TWELVE(STEP) }
        TWELVE(KEEP)
#undef START
#undef STEP
    }
    return 2.0 * CHAINS * ROUNDS * (VECTOR / 4) * omp_get_max_threads() / (omp_get_wtime() - start);
}

// Products of bytes summed into int32: the best instruction that the CPU has for it, but for tiles.
#if defined(__AVX512VNNI__)
typedef __m512i bytes;
#define MULTIPLY_ADD(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#elif defined(__AVX512BW__)
typedef __m512i bytes;
#define MULTIPLY_ADD(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), a))
#elif defined(__AVX2__)
typedef __m256i bytes;
#define MULTIPLY_ADD(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), a))
#else
typedef int16_t bytes __attribute__((vector_size(VECTOR)));
#define MULTIPLY_ADD(sum, a, b) ((sum) + (a) * (b))
#endif

double peak_int8(void) {
    double start = omp_get_wtime();
#pragma omp parallel
    {
        bytes a = {}, b = {};
#define START(c) bytes x##c = {};
#define STEP(c) x##c = MULTIPLY_ADD(x##c, a, b); __asm__("" : "+" REGISTER (x##c), "+" REGISTER (a));
        TWELVE(START)
        for (int i = 0; i < ROUNDS; i++) { TWELVE(STEP) }
        TWELVE(KEEP)
    }
    return 2.0 * CHAINS * ROUNDS * sizeof(bytes) * omp_get_max_threads() / (omp_get_wtime() - start);
}

double read_rate(const float *x, int64_t n, int64_t passes) {
    double start = omp_get_wtime();
    for (int64_t p = 0; p < passes; p++) {
        float sum = 0;
#pragma omp parallel for simd reduction(+ : sum) aligned(x : 4)
        for (int64_t i = 0; i < n / 64 * 64; i++) sum += x[i];
        __asm__ volatile("" ::REGISTER(sum) : "memory");
    }
    return 4.0 * n * passes / (omp_get_wtime() - start);
}

// The three arrays lie in the thirds of x.
double triad_rate(float *x, int64_t n, int64_t passes) {
    int64_t m = n / 48 * 16;
    float *a = x, *b = x + m, *c = x + 2 * m;
    double start = omp_get_wtime();
    for (int64_t p = 0; p < passes; p++) {
#pragma omp parallel for simd
        for (int64_t i = 0; i < m; i++) a[i] = b[i] + 3.0f * c[i];
        __asm__ volatile("" ::: "memory");
    }
    return 12.0 * m * passes / (omp_get_wtime() - start);
}

// Stores past the caches, where the compiler has a name for them.
double streaming_triad_rate(float *x, int64_t n, int64_t passes) {
#if defined(__x86_64__)
    int64_t m = n / 48 * 16;
    float *a = (float *)(((uintptr_t)x + 63) & ~(uintptr_t)63), *b = a + m, *c = b + m;
    m -= 16;
    double start = omp_get_wtime();
    for (int64_t p = 0; p < passes; p++) {
#pragma omp parallel for
        for (int64_t i = 0; i < m; i += 16) {
            for (int j = 0; j < 16; j += 4) {
                __m128 product = _mm_mul_ps(_mm_set1_ps(3.0f), _mm_loadu_ps(c + i + j));
                _mm_stream_ps(a + i + j, _mm_add_ps(_mm_loadu_ps(b + i + j), product));
            }
        }
        _mm_sfence();
    }
    return 12.0 * m * passes / (omp_get_wtime() - start);
#else
    return triad_rate(x, n, passes);
#endif
}
