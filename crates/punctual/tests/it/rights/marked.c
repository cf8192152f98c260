/* Marks its cycles, which also contain a sleep, and prints their median response time in ns. */
#include "punctual.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 50

static long long now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void compute(long long ns)
{
    long long end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
    }
}

static int by_value(const void *a, const void *b)
{
    long long left = *(const long long *)a, right = *(const long long *)b;
    return (left > right) - (left < right);
}

/* Does nothing but exist, with the policy of the thread that started it. */
static void *helper(void *unused)
{
    pthread_setname_np(pthread_self(), "helper");
    for (int i = 0; i < 10; i++)
        usleep(10000);
    return unused;
}

int main(void)
{
    long long responses[CYCLES];
    pthread_t thread;
    if (pthread_create(&thread, NULL, helper, NULL) != 0)
        return 1;
    usleep(400000);
    for (int i = 0; i < CYCLES; i++) {
        usleep(3000);
        usleep(3000);
        long long begun_ns = now_ns(CLOCK_MONOTONIC);
        PUNCTUAL_CYCLE_BEGIN();
        compute(500000);
        usleep(1000);
        compute(500000);
        PUNCTUAL_CYCLE_END();
        responses[i] = now_ns(CLOCK_MONOTONIC) - begun_ns;
    }
    qsort(responses, CYCLES, sizeof(responses[0]), by_value);
    printf("%lld\n", responses[CYCLES / 2]);
    return pthread_join(thread, NULL);
}
