// Four state machines of PIO0 run the same program: two for each pin, one cycle apart. Its loop takes two cycles,
// because a state machine cannot count and sample in the same cycle. One sampler of a pin sees the odd cycles, the
// other the even ones, so the earlier of their two times is exact to one cycle.
//
// Both pins go through the same input circuits (a synchroniser of two cycles, section 3.5.6.3), including the question
// pin, which the judge drives itself. The delays cancel, so the time from question to answer has no constant offset.
#include "samplers.h"

#include "board.h"
#include "rp2040.h"

// X counts down by one in every two cycles, on each path. `jmp x--` to the next address only counts, also when X wraps
// from 0 to 2^32 - 1. A word consists of bits 30 to 0 of X and of the new level. `push noblock` never stops the count.
// If the FIFO is full, the state machine discards the word and sets RXSTALL (section 3.7, FDEBUG).
// The instruction set is in section 3.4.
enum { ENTRY = 7, WRAP_TOP = 8, ENTRY_ONE_CYCLE_LATER = 18 };
static const uint16_t program[] = {
    0x403f, //  0 fell:  in x, 31
    0x4061, //  1        in null, 1
    0x8000, //  2        push noblock
    0x0044, //  3        jmp x-- 4      8 cycles from address 17 to 6, so X counts four times
    0x0045, //  4        jmp x-- 5
    0x0046, //  5        jmp x-- 6
    0x0047, //  6        jmp x-- low
    0x0048, //  7 low:   jmp x-- 8
    0x00c9, //  8        jmp pin rose   the sample; wraps to low without a cycle
    0x403f, //  9 rose:  in x, 31
    0x4041, // 10        in y, 1        Y is 1
    0x8000, // 11        push noblock
    0x004d, // 12        jmp x-- 13     6 cycles from address 9 to 14, so X counts three times
    0x004e, // 13        jmp x-- 14
    0x004f, // 14        jmp x-- high
    0x0050, // 15 high:  jmp x-- 16
    0x00cf, // 16        jmp pin high   the sample
    0x0000, // 17        jmp fell
    0x0007, // 18        jmp low        the sampler of the even cycles starts here
};
enum { PULL = 0x80a0, MOV_X_OSR = 0xa027, SET_Y_1 = 0xe041, JMP = 0x0000 };

enum { SAMPLERS = 4, QUEUE = 16 };
struct queue {
    struct change entries[QUEUE];
    uint32_t put, got;
};

// Samplers 0 and 1 belong to the question pin, 2 and 3 to the answer pin; 0 and 2 see the odd ticks.
static struct queue raw[SAMPLERS];
static struct queue paired[2];
static uint32_t round_number;

static bool is_empty(const struct queue *q) {
    return q->put == q->got;
}

static bool is_full(const struct queue *q) {
    return q->put - q->got == QUEUE;
}

static struct change *head(struct queue *q) {
    return &q->entries[q->got % QUEUE];
}

static void put(struct queue *q, struct change change) {
    q->entries[q->put++ % QUEUE] = change;
}

void samplers_init(void) {
    for (uint32_t i = 0; i < sizeof program / sizeof program[0]; i++) REG(PIO0 + PIO_INSTRUCTION(i)) = program[i];
    for (uint32_t sm = 0; sm < SAMPLERS; sm++) {
        const uint32_t pin = sm < 2 ? PIN_QUESTION : PIN_ANSWER;
        REG(PIO0 + PIO_CLKDIV(sm)) = 1u << 16;
        REG(PIO0 + PIO_EXECCTRL(sm)) = pin << 24 | WRAP_TOP << 12 | ENTRY << 7;
        REG(PIO0 + PIO_PINCTRL(sm)) = 0;
    }
}

void samplers_start(void) {
    for (uint32_t sm = 0; sm < SAMPLERS; sm++) {
        // X is loaded through the TX FIFO, which the RX FIFO takes over afterwards. Both changes empty the FIFOs.
        REG(PIO0 + PIO_SHIFTCTRL(sm)) = PIO_OUT_RIGHT;
        REG(PIO0 + PIO_CTRL) = PIO_RESTART(sm);
        REG(PIO0 + PIO_TXF(sm)) = SAMPLERS_WRAP;
        REG(PIO0 + PIO_EXECUTE(sm)) = PULL;
        REG(PIO0 + PIO_EXECUTE(sm)) = MOV_X_OSR;
        REG(PIO0 + PIO_EXECUTE(sm)) = SET_Y_1;
        REG(PIO0 + PIO_EXECUTE(sm)) = JMP | (sm & 1 ? ENTRY_ONE_CYCLE_LATER : ENTRY);
        REG(PIO0 + PIO_SHIFTCTRL(sm)) = PIO_OUT_RIGHT | PIO_JOIN_RX;
        raw[sm].put = raw[sm].got = 0;
    }
    for (int pin = QUESTION; pin <= ANSWER; pin++) paired[pin].put = paired[pin].got = 0;
    REG(PIO0 + PIO_FDEBUG) = 0x0f0f0f0f;
    REG(PIO0 + PIO_CTRL) = 0xf; // all four in the same cycle
}

void samplers_stop(void) {
    REG(PIO0 + PIO_CTRL) = 0;
    for (uint32_t sm = 0; sm < SAMPLERS; sm++) {
        while (!(REG(PIO0 + PIO_FSTAT) & PIO_RX_EMPTY(sm))) (void)REG(PIO0 + PIO_RXF(sm));
    }
}

static void read_fifo(uint32_t sm) {
    while (!is_full(&raw[sm]) && !(REG(PIO0 + PIO_FSTAT) & PIO_RX_EMPTY(sm))) {
        const uint32_t word = REG(PIO0 + PIO_RXF(sm));
        // The samplers of the odd ticks have counted n times at tick 2n - 1, the others at tick 2n.
        const uint32_t tick = 0 - (word & ~1u) - (sm & 1 ? 0 : 1);
        put(&raw[sm], (struct change){.tick = tick, .round = round_number, .active = word & 1});
    }
}

// Merges what the two samplers of a pin saw. A change that both saw differs by one tick, because they sample in turn.
static void pair_up(enum pin pin) {
    struct queue *odd = &raw[2 * pin], *even = &raw[2 * pin + 1];
    while (!is_full(&paired[pin]) && !(is_empty(odd) && is_empty(even))) {
        struct queue *first = is_empty(odd) ? even : odd, *second = 0;
        if (!is_empty(odd) && !is_empty(even)) {
            const int32_t lead = (int32_t)(head(even)->tick - head(odd)->tick);
            first = lead < 0 ? even : odd;
            if ((lead == 1 || lead == -1) && head(odd)->active == head(even)->active) {
                second = lead < 0 ? odd : even;
            }
        } else if (head(first)->round == round_number) {
            return; // the other sampler may have seen it after its FIFO was read
        }
        struct change change = *head(first);
        change.brief = second == 0;
        if (second != 0) {
            change.round = round_number;
            second->got++;
        }
        first->got++;
        put(&paired[pin], change);
    }
}

bool samplers_poll(void) {
    const uint32_t stalled = REG(PIO0 + PIO_FDEBUG) & 0xf;
    REG(PIO0 + PIO_FDEBUG) = stalled;
    round_number++;
    for (uint32_t sm = 0; sm < SAMPLERS; sm++) read_fifo(sm);
    pair_up(QUESTION);
    pair_up(ANSWER);
    return stalled != 0;
}

bool samplers_next(enum pin *pin, struct change *change) {
    struct queue *q = &paired[QUESTION], *a = &paired[ANSWER];
    if (is_empty(q) && is_empty(a)) return false;
    if (!is_empty(q) && !is_empty(a)) {
        // In the same tick, the answer goes first: a change in the tick of the question cannot be its answer.
        *pin = (int32_t)(head(a)->tick - head(q)->tick) <= 0 ? ANSWER : QUESTION;
    } else {
        *pin = is_empty(q) ? ANSWER : QUESTION;
        // An earlier change of the other pin is read at the latest in the next round, and paired in the round after.
        if (round_number - head(&paired[*pin])->round < 2) return false;
    }
    *change = *head(&paired[*pin]);
    paired[*pin].got++;
    return true;
}
