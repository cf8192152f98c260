#include "command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "frame.h"
#include "line.h"
#include "run.h"

#define VERSION "punctual-judge 1"

enum {
    MIN_PERIOD = 50 * TICKS_PER_US,
    MAX_PERIOD = 10 * CLOCK_HZ, // with the random part
    MIN_WIDTH = 1 * TICKS_PER_US,
    MIN_PAUSE = 1 * TICKS_PER_US,
    LINE = 80,
};

static struct settings settings = {
    .period = 1000 * TICKS_PER_US,
    .random = 0,
    .width = 10 * TICKS_PER_US,
    .timeout = 900 * TICKS_PER_US,
    .count = 1000,
    .seed = 1,
};

static char line[LINE + 1];
static size_t length;
static bool is_damaged, is_too_long;
static bool needs_crc; // after the first command with a CRC

static void ok(void) {
    reply_text("ok");
    reply_end();
}

static void error(const char *text) {
    reply_text("error: ");
    reply_text(text);
    reply_end();
}

// True if the word is the first of the text. The rest begins after the spaces that follow.
static bool takes(const char *word, const char *text, const char **rest) {
    while (*word && *word == *text) word++, text++;
    if (*word || (*text && *text != ' ')) return false;
    while (*text == ' ') text++;
    *rest = text;
    return true;
}

static bool equals(const char *a, const char *b) {
    const char *rest;
    return takes(a, b, &rest) && !*rest;
}

// Reads a decimal number of at most 12 digits.
static bool read_number(const char **text, uint64_t *number) {
    const char *start = *text;
    *number = 0;
    while (**text >= '0' && **text <= '9') *number = *number * 10 + (uint64_t)(*(*text)++ - '0');
    return *text != start && *text - start <= 12;
}

// Reads a time with an optional unit (ns is the default) into ticks; sends an error if that is not possible.
static bool read_ticks(const char *text, uint32_t min, uint32_t max, uint32_t *ticks) {
    uint64_t ns;
    if (!read_number(&text, &ns)) return error("expected a time, e.g. 500us"), false;
    const uint32_t scale = equals("s", text)    ? 1000000000
                           : equals("ms", text) ? 1000000
                           : equals("us", text) ? 1000
                           : equals("ns", text) || !*text ? 1
                                                          : 0;
    if (!scale) return error("unit must be ns, us, ms or s"), false;
    // 10^12 * 10^9 does not fit in 64 bits, so the range is checked before the product.
    if (ns > (uint64_t)MAX_PERIOD * TICK_NS / scale || ns * scale < (uint64_t)min * TICK_NS ||
        ns * scale > (uint64_t)max * TICK_NS) {
        reply_text("error: time must be ");
        reply_number((uint64_t)min * TICK_NS);
        reply_text(" to ");
        reply_number((uint64_t)max * TICK_NS);
        reply_text(" ns");
        reply_end();
        return false;
    }
    ns *= scale;
    if (ns % TICK_NS) return error("time must be a multiple of 8 ns"), false;
    *ticks = (uint32_t)(ns / TICK_NS);
    return true;
}

static void set_ticks(const char *text, uint32_t min, uint32_t max, uint32_t *ticks) {
    if (read_ticks(text, min, max, ticks)) ok();
}

static void set_number(const char *text, uint32_t min, uint32_t *value) {
    uint64_t number;
    if (!read_number(&text, &number) || *text || number > 0xffffffff || number < min) {
        error(min ? "expected a number, 1 to 4294967295" : "expected a number, 0 to 4294967295");
        return;
    }
    *value = (uint32_t)number;
    ok();
}

static void set_level(const char *text, bool *low) {
    if (!equals("low", text) && !equals("high", text)) {
        error("level must be high or low");
        return;
    }
    *low = *text == 'l';
    board_set_levels(settings.question_low, settings.answer_low);
    ok();
}

static void reply_setting(const char *name, uint64_t value) {
    reply_text(name);
    reply_number(value);
}

static void send_settings(void) {
    reply_setting("ok period=", (uint64_t)settings.period * TICK_NS);
    reply_setting(" random=", (uint64_t)settings.random * TICK_NS);
    reply_setting(" width=", (uint64_t)settings.width * TICK_NS);
    reply_setting(" timeout=", (uint64_t)settings.timeout * TICK_NS);
    reply_setting(" count=", settings.count);
    reply_setting(" seed=", settings.seed);
    reply_text(settings.question_low ? " question=low" : " question=high");
    reply_text(settings.answer_low ? " answer=low" : " answer=high");
    reply_end();
}

static void start(void) {
    if (settings.timeout > settings.period) {
        error("timeout must not exceed period");
    } else if (settings.width + MIN_PAUSE > settings.period) {
        error("width must be at least 1 us less than period");
    } else if (settings.period + settings.random > MAX_PERIOD) {
        error("period and random must not exceed 10 s together");
    } else {
        send_settings();
        run_start(&settings);
    }
}

static void execute(const char *text) {
    const char *rest;
    if (equals("version", text)) {
        reply_text("ok " VERSION);
        reply_end();
    } else if (equals("show", text)) {
        send_settings();
    } else if (equals("stop", text)) {
        run_stop();
        ok();
    } else if (run_is_active()) {
        error("running: only stop, show and version are allowed");
    } else if (equals("start", text)) {
        start();
    } else if (equals("example", text)) {
        ok();
        frame_send_examples();
    } else if (takes("period", text, &rest)) {
        set_ticks(rest, MIN_PERIOD, MAX_PERIOD, &settings.period);
    } else if (takes("random", text, &rest)) {
        set_ticks(rest, 0, MAX_PERIOD, &settings.random);
    } else if (takes("width", text, &rest)) {
        set_ticks(rest, MIN_WIDTH, MAX_PERIOD, &settings.width);
    } else if (takes("timeout", text, &rest)) {
        set_ticks(rest, 1, MAX_PERIOD, &settings.timeout);
    } else if (takes("count", text, &rest)) {
        set_number(rest, 0, &settings.count);
    } else if (takes("seed", text, &rest)) {
        set_number(rest, 1, &settings.seed);
    } else if (takes("question", text, &rest)) {
        set_level(rest, &settings.question_low);
    } else if (takes("answer", text, &rest)) {
        set_level(rest, &settings.answer_low);
    } else {
        error("unknown command");
    }
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// True if the last five characters are `*` and the CRC of the characters before; removes them.
static bool take_crc(void) {
    if (length < 5 || line[length - 5] != '*') return false;
    uint16_t crc = 0;
    for (size_t i = length - 4; i < length; i++) {
        const int digit = hex_digit(line[i]);
        if (digit < 0) return false;
        crc = (uint16_t)(crc << 4 | digit);
    }
    if (crc != crc16(line, length - 5)) return false;
    length -= 5;
    return true;
}

static void end_of_line(void) {
    if (is_damaged) {
        error("damaged line");
    } else if (is_too_long) {
        error("line is longer than 80 characters");
    } else if (length) {
        bool has_star = false;
        for (size_t i = 0; i < length; i++) has_star |= line[i] == '*';
        if (has_star && !take_crc()) {
            error("wrong CRC");
        } else if (!has_star && needs_crc) {
            error("missing CRC");
        } else {
            needs_crc |= has_star;
            line[length] = 0;
            execute(line);
        }
    }
    length = 0;
    is_damaged = is_too_long = false;
}

void command_init(void) {
    board_set_levels(settings.question_low, settings.answer_low);
}

void command_poll(void) {
    const int byte = line_read();
    if (byte == -1) return;
    if (byte == '\r' || byte == '\n') {
        end_of_line();
    } else if (byte < ' ' || byte > '~') {
        is_damaged = true;
    } else if (length == LINE) {
        is_too_long = true;
    } else {
        line[length++] = (char)byte;
    }
}
