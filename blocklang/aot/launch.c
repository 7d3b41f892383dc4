/* The launcher of a library that `blocklang build` makes: the entries of the compiled kernel stand behind it.

   It chooses the CPU level when the library is loaded, gives every thread scratch memory of its own, and
   spreads the programs over threads. Nothing is kept between two calls but the choice of the level, so any
   number of threads may call at once, and a forked child may call too. The layout of slots, grid and scratch
   memory is that of blocklang/abi.py.

   Every function and variable is called blocklang_..., as no kernel may be: static names are the assembler's
   too.

   What each bit of CPUID means: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID,
   and volume 1, 13.3 (XCR0). Which features a level has: System V ABI, AMD64 supplement, table 3.1. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    BLOCKLANG_OK,
    BLOCKLANG_ERROR_GRID,
    BLOCKLANG_ERROR_ARGUMENT,
    BLOCKLANG_ERROR_THREADS,
    BLOCKLANG_ERROR_MEMORY,
    BLOCKLANG_ERROR_CPU,
    ALIGNMENT = 64,          /* of scratch memory; as many bytes before it hold the launch's number */
    MAXIMUM_THREADS = 256,   /* beyond the CPUs they only cost memory */
    CHUNKS_PER_THREAD = 16,
    WAKE_NS = 500000         /* a shorter rest is not worth starting threads, which a busy machine delays */
};

typedef void entry(const void *arguments, const int32_t *grid, int64_t begin, int64_t end, void *scratch);

/* The kernel for one level; [0]: no array that it writes overlaps another, [1]: they lie anywhere. */
struct version {
    const char *level;
    int number; /* n of x86-64-vn; 0 if nothing is asked of the CPU */
    entry *entries[2];
    size_t scratch_bytes[2];
};

struct job {
    _Atomic int64_t next;
    int64_t total, chunk;
    entry *run;
    size_t scratch_bytes;
    const void *arguments;
    const int32_t *grid;
};

static const struct version *blocklang_chosen; /* NULL if the library has nothing for this CPU */

static bool blocklang_has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

/* n of the highest x86-64-vn whose features CPU and operating system offer. */
static int blocklang_level_of_cpu(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d, extended = 0, leaf7 = 0, saved = 0, high;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 1;
    uint32_t basic = c;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        extended = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        leaf7 = b;
    if (blocklang_has(basic, 1u << 27)) /* OSXSAVE: XGETBV may be asked which registers the system saves */
        __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    /* SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF */
    if (!blocklang_has(basic, 1u | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23) ||
        !blocklang_has(extended, 1u))
        return 1;
    /* FMA, MOVBE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2; XMM and YMM registers */
    if (!blocklang_has(basic, 1u << 12 | 1u << 22 | 1u << 28 | 1u << 29) || !blocklang_has(extended, 1u << 5) ||
        !blocklang_has(leaf7, 1u << 3 | 1u << 5 | 1u << 8) || !blocklang_has(saved, 0x06))
        return 2;
    /* AVX-512 F, DQ, CD, BW, VL; mask and ZMM registers */
    if (!blocklang_has(leaf7, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) ||
        !blocklang_has(saved, 0xe6))
        return 3;
    return 4;
#else
    return 0;
#endif
}

/* n of the level that BLOCKLANG_CPU names; `none` if it names none, -1 if it is no level. */
static int blocklang_level_asked_for(int none)
{
    static const char *const names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    const char *name = getenv("BLOCKLANG_CPU");
    if (!name || !*name || !strcmp(name, "host"))
        return none;
    for (int n = 0; n < 4; n++)
        if (!strcmp(name, names[n]))
            return n + 1;
    return -1;
}

/* The best version, of ascending levels, that this CPU runs and BLOCKLANG_CPU allows. */
static const struct version *blocklang_choose(const struct version *versions, int count)
{
    int cpu = blocklang_level_of_cpu(), asked = blocklang_level_asked_for(cpu);
    const struct version *best = NULL;
    if (asked > cpu) /* what was asked for would end in an illegal instruction */
        return NULL;
    for (int i = 0; i < count; i++)
        if (versions[i].number <= asked)
            best = &versions[i];
    return best;
}

/* Zeroed scratch memory with the launch's number before it, and in *memory what is to be freed. Tables that
   programs share are empty if they bear another number, and zero is another. */
static void *blocklang_new_scratch(size_t bytes, void **memory)
{
    char *start = *memory = calloc(1, bytes + 2 * ALIGNMENT);
    if (!start)
        return NULL;
    start += ALIGNMENT;
    start += -(uintptr_t)start % ALIGNMENT;
    int64_t number = 1;
    memcpy(start - ALIGNMENT, &number, sizeof number);
    return start;
}

/* Take chunks until none is left. They start in ascending order, so a program may wait for any lower one. */
static void blocklang_drain(struct job *job, void *scratch)
{
    for (;;) {
        int64_t begin = atomic_fetch_add(&job->next, job->chunk);
        if (begin >= job->total)
            return;
        int64_t count = job->total - begin < job->chunk ? job->total - begin : job->chunk;
        job->run(job->arguments, job->grid, begin, begin + count, scratch);
    }
}

static void *blocklang_help(void *given)
{
    struct job *job = given;
    void *memory, *scratch = blocklang_new_scratch(job->scratch_bytes, &memory);
    if (scratch) /* otherwise the others do its part */
        blocklang_drain(job, scratch);
    free(memory);
    return NULL;
}

static int blocklang_allowed_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < MAXIMUM_THREADS ? (int)online : 1;
}

static int64_t blocklang_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Run what is left of the job on this thread and up to `threads - 1` more, and wait for all. */
static void blocklang_spread(struct job *job, int threads, void *scratch)
{
    pthread_t helpers[MAXIMUM_THREADS];
    int64_t programs = job->total - job->next;
    if (threads > MAXIMUM_THREADS)
        threads = MAXIMUM_THREADS;
    if (threads > programs)
        threads = (int)programs;
    job->chunk = programs / ((int64_t)threads * CHUNKS_PER_THREAD);
    if (job->chunk < 1)
        job->chunk = 1;
    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = 0;
    while (started < threads - 1 && pthread_create(&helpers[started], NULL, blocklang_help, job) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    blocklang_drain(job, scratch);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
}

static int blocklang_launch(int alias, const void *arguments, const int32_t grid[3], int32_t threads)
{
    int64_t total;
    if (!blocklang_chosen)
        return BLOCKLANG_ERROR_CPU;
    if (threads < 0)
        return BLOCKLANG_ERROR_THREADS;
    if (grid[0] < 0 || grid[1] < 0 || grid[2] < 0)
        return BLOCKLANG_ERROR_GRID;
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
        return BLOCKLANG_OK;
    if (__builtin_mul_overflow((int64_t)grid[0] * grid[1], (int64_t)grid[2], &total))
        return BLOCKLANG_ERROR_GRID;
    struct job job = {.total = total,
                      .run = blocklang_chosen->entries[alias],
                      .scratch_bytes = blocklang_chosen->scratch_bytes[alias],
                      .arguments = arguments,
                      .grid = grid};
    void *memory, *scratch = blocklang_new_scratch(job.scratch_bytes, &memory);
    if (!scratch)
        return BLOCKLANG_ERROR_MEMORY;
    /* The first program tells whether the others are worth more threads. */
    int64_t start = blocklang_now();
    job.run(arguments, grid, 0, 1, scratch);
    double expected = (double)(blocklang_now() - start) * (double)(total - 1);
    job.next = 1;
    if (threads == 0)
        threads = blocklang_allowed_cpus();
    if (total > 1 && (threads == 1 || expected < WAKE_NS))
        job.run(arguments, grid, 1, total, scratch);
    else if (total > 1)
        blocklang_spread(&job, threads, scratch);
    free(memory);
    return BLOCKLANG_OK;
}

static const char *blocklang_status_text(int status)
{
    switch (status) {
    case BLOCKLANG_OK:
        return "done";
    case BLOCKLANG_ERROR_GRID:
        return "an extent of the grid is negative, or the grid has more than 2^63 - 1 programs";
    case BLOCKLANG_ERROR_ARGUMENT:
        return "an argument is not the multiple that it was promised to be: an address of its element's size, "
               "or what :16 was said of";
    case BLOCKLANG_ERROR_THREADS:
        return "the number of threads is negative";
    case BLOCKLANG_ERROR_MEMORY:
        return "there is not enough memory for the blocks of one program";
    case BLOCKLANG_ERROR_CPU:
        return "the library has no code for this CPU, or BLOCKLANG_CPU names no level that this CPU has";
    }
    return "no status of this library";
}
