// The generator of the questions: PIO1 sets the question pin active for a time and inactive for a time.
#ifndef JUDGE_QUESTIONS_H
#define JUDGE_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

// Cycles of the program in addition to the two waits.
enum { QUESTION_OVERHEAD_ACTIVE = 2, QUESTION_OVERHEAD_INACTIVE = 6 };

void questions_init(void);
void questions_start(void);
// Sets the pin inactive and forgets the questions that are queued.
void questions_stop(void);
bool questions_have_space(void);
// Queues a question: inactive for a time, then active for a time, in ticks.
void questions_put(uint32_t inactive, uint32_t active);

#endif
