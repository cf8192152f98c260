// Times of all level changes of the two pins, measured by PIO0 with a resolution of one tick (8 ns).
#ifndef JUDGE_SAMPLERS_H
#define JUDGE_SAMPLERS_H

#include <stdbool.h>
#include <stdint.h>

enum pin { QUESTION, ANSWER };

struct change {
    uint32_t tick;  // low 32 bits of the time; see SAMPLERS_START
    uint32_t round; // call of samplers_poll that read it
    bool active;    // level after the change
    bool brief;     // seen by one of the two samplers only
};

// Units of two ticks until the 32-bit tick wraps: 1 ms after each start, so that every run tests the wrap.
#define SAMPLERS_WRAP 62500u
// The 32-bit tick at the start.
#define SAMPLERS_START ((uint32_t)-(2 * SAMPLERS_WRAP))
// A pin that is active at the start is seen at one of these first ticks.
enum { SAMPLERS_FIRST_TICKS = 2 };

void samplers_init(void);
void samplers_start(void);
void samplers_stop(void);
// Reads and pairs what the samplers saw. Returns true if a sampler had to discard a change since the last call.
bool samplers_poll(void);
// Removes the earliest change of both pins. Returns false if there is none yet that can be ordered.
bool samplers_next(enum pin *pin, struct change *change);

#endif
