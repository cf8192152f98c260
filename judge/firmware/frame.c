#include "frame.h"

#include "line.h"

void frame_seal(void *frame, size_t length) {
    const uint16_t crc = crc16(frame, length - 2);
    uint8_t *last = (uint8_t *)frame + length - 2;
    last[0] = (uint8_t)crc;
    last[1] = (uint8_t)(crc >> 8);
}

void frame_send_examples(void) {
    struct event_frame event = {
        .sync = FRAME_SYNC, .kind = LATE, .flags = FLAG_ACTIVE_BEFORE, .number = 41, .question = 42,
        .time = 5250017, .after = 12501, .lost_before = 3,
    };
    frame_seal(&event, sizeof event);
    struct end_frame end = {
        .sync = FRAME_SYNC, .kind = END, .reason = REASON_COUNT, .number = 1003, .questions = 1000,
        .time = 125125000, .answered = 990, .missed = 7, .late = 3, .spurious = 3, .active_before = 1, .lost = 3,
    };
    frame_seal(&end, sizeof end);
    (void)line_put(&event, sizeof event, 0);
    (void)line_put(&end, sizeof end, 0);
}
