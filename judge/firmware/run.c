#include "run.h"

#include "board.h"
#include "frame.h"
#include "line.h"
#include "questions.h"
#include "samplers.h"

enum { IDLE, ASKING, CLOSING, ENDING } state;

static struct settings set;
static struct end_frame totals;
static uint32_t window_us;       // a question is open at most this long
static uint32_t queued;          // questions given to the generator
static uint32_t random_state;
static uint64_t now;             // latest time that is known, in ticks; its low half is the tick of the samplers
static uint64_t question_time;
static uint32_t question_us;     // time of the processor at the last question, or at the start
static uint8_t question_flags;
static bool is_open;             // the last question has no answer yet
static bool answer_is_active;
static bool discarded;           // a sampler has discarded changes since the last frame
static uint32_t lost_before;     // frames that did not fit in the buffer since the last that did
static uint32_t frame_number;

// The xorshift generator of G. Marsaglia, "Xorshift RNGs", 2003.
static uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static void send(enum kind kind, uint8_t flags, uint64_t time, uint32_t after) {
    struct event_frame frame = {
        .sync = FRAME_SYNC,
        .kind = (uint8_t)kind,
        .flags = flags | (discarded ? FLAG_DISCARDED : 0),
        .number = frame_number++,
        .question = totals.questions,
        .time = time - SAMPLERS_START,
        .after = after,
        .lost_before = lost_before > 0xffff ? 0xffff : (uint16_t)lost_before,
    };
    frame_seal(&frame, sizeof frame);
    if (line_put(&frame, sizeof frame, LINE_RESERVE)) {
        lost_before = 0;
        discarded = false;
    } else {
        lost_before++;
        totals.lost++;
    }
}

static void close_question(void) {
    if (!is_open) return;
    is_open = false;
    totals.missed++;
    send(MISSED, question_flags, question_time, NO_ANSWER);
}

static void on_question(bool brief) {
    close_question();
    totals.questions++;
    question_time = now;
    question_us = board_us();
    question_flags = (answer_is_active ? FLAG_ACTIVE_BEFORE : 0) | (brief ? FLAG_BRIEF : 0);
    totals.active_before += answer_is_active;
    is_open = true;
    if (set.count != 0 && totals.questions == set.count) state = CLOSING;
}

static void on_answer(bool brief) {
    const uint32_t after = totals.questions ? (uint32_t)(now - question_time) : (uint32_t)NO_ANSWER;
    const uint8_t brief_flag = brief ? FLAG_BRIEF : 0;
    // The window of the last question has ended, and with it the run.
    if (state == CLOSING && after > set.period + set.random) return;
    if (!is_open) {
        totals.spurious++;
        send(SPURIOUS, brief_flag, now, after);
        return;
    }
    is_open = false;
    const bool is_late = after > set.timeout;
    if (is_late) {
        totals.late++;
    } else {
        totals.answered++;
    }
    send(is_late ? LATE : ANSWERED, question_flags | brief_flag, question_time, after);
}

static void on_change(enum pin pin, const struct change *change) {
    // Changes come in order and less than 2^31 ticks (17 s) apart, because a run ends 10 s after its last question.
    now += (int32_t)(change->tick - (uint32_t)now);
    if (pin == QUESTION) {
        if (change->active) on_question(change->brief);
        return;
    }
    const bool is_level_at_start = now - SAMPLERS_START <= SAMPLERS_FIRST_TICKS;
    if (change->active && !is_level_at_start) on_answer(change->brief);
    answer_is_active = change->active;
}

void run_start(const struct settings *settings) {
    set = *settings;
    window_us = (set.period + set.random) / TICKS_PER_US;
    random_state = set.seed;
    totals = (struct end_frame){.sync = FRAME_SYNC, .kind = END};
    queued = frame_number = lost_before = 0;
    discarded = is_open = answer_is_active = false;
    question_time = now = SAMPLERS_START;
    question_us = board_us();
    state = ASKING;
    board_set_led(true);
    samplers_start();
    questions_start();
}

static void close(enum reason reason) {
    questions_stop();
    totals.reason = (uint8_t)reason;
    state = CLOSING;
}

void run_stop(void) {
    if (state == ASKING) close(REASON_STOP);
}

bool run_is_active(void) {
    return state != IDLE;
}

static void ask(void) {
    while ((set.count == 0 || queued < set.count) && questions_have_space()) {
        const uint32_t extra = (uint32_t)((uint64_t)next_random() * (set.random + 1) >> 32);
        questions_put(set.period + extra - set.width, set.width);
        queued++;
    }
}

void run_poll(void) {
    if (state == IDLE) return;
    if (state == ASKING) ask();
    bool has_change = false;
    if (state != ENDING) {
        if (samplers_poll()) {
            discarded = true;
            if (totals.discarded < 0xffff) totals.discarded++;
        }
        enum pin pin;
        struct change change;
        // One frame a round, because the FIFOs of the samplers must be read often.
        const uint32_t frames = frame_number;
        while (frame_number == frames && (has_change = samplers_next(&pin, &change))) on_change(pin, &change);
    }

    const uint32_t waited_us = board_us() - question_us;
    if (state == ASKING && waited_us > window_us + 1000) close(REASON_QUESTION_PIN);
    // 100 us more than the window, so that all changes within it are read.
    if (state == CLOSING && waited_us > window_us + 100 && !has_change) {
        close_question();
        if (!totals.reason) totals.reason = REASON_COUNT;
        questions_stop();
        samplers_stop();
        totals.number = frame_number;
        totals.time = totals.questions ? question_time + set.period + set.random - SAMPLERS_START : 0;
        frame_seal(&totals, sizeof totals);
        state = ENDING;
    }
    // The end frame is never lost: it waits for space in the buffer.
    if (state == ENDING && line_put(&totals, sizeof totals, 0)) {
        board_set_led(false);
        state = IDLE;
    }
}
