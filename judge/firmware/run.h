// A run: questions, their answers, and the frames that report them.
#ifndef JUDGE_RUN_H
#define JUDGE_RUN_H

#include <stdbool.h>
#include <stdint.h>

// Times in ticks of 8 ns.
struct settings {
    uint32_t period, random, width, timeout;
    uint32_t count; // 0 is endless
    uint32_t seed;
    bool question_low, answer_low;
};

void run_start(const struct settings *settings);
void run_stop(void);
bool run_is_active(void);
void run_poll(void);

#endif
