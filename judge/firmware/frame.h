// The binary frames of a run. PROTOCOL.md describes them byte by byte.
#ifndef JUDGE_FRAME_H
#define JUDGE_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_SYNC = 0xa5 };
enum kind { ANSWERED = 1, MISSED = 2, LATE = 3, SPURIOUS = 4, END = 5 };
enum flag { FLAG_ACTIVE_BEFORE = 1, FLAG_DISCARDED = 2, FLAG_BRIEF = 4 };
enum reason { REASON_COUNT = 1, REASON_STOP = 2, REASON_QUESTION_PIN = 3 };
enum { NO_ANSWER = 0xffffffff };

// The processor is little-endian, as the protocol. All fields are naturally aligned within the packed types.
struct __attribute__((packed)) event_frame {
    uint8_t sync, kind, flags, reserved;
    uint32_t number;
    uint32_t question;
    uint64_t time;
    uint32_t after;
    uint16_t lost_before;
    uint16_t crc;
};
_Static_assert(sizeof(struct event_frame) == 28, "PROTOCOL.md");

struct __attribute__((packed)) end_frame {
    uint8_t sync, kind, reason, reserved;
    uint32_t number;
    uint32_t questions;
    uint64_t time;
    uint32_t answered, missed, late, spurious, active_before, lost;
    uint16_t discarded;
    uint16_t crc;
};
_Static_assert(sizeof(struct end_frame) == 48, "PROTOCOL.md");

// Writes the CRC into the last two bytes of a frame.
void frame_seal(void *frame, size_t length);
// Sends the example frames of PROTOCOL.md.
void frame_send_examples(void);

#endif
