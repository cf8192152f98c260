// The serial line: a buffer for what is sent, and replies as text.
#ifndef JUDGE_LINE_H
#define JUDGE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The part of the buffer that results leave free, so that a slow line does not lose replies and the end frame.
enum { LINE_RESERVE = 1024 };

// Moves bytes from the buffer to the UART.
void line_poll(void);
// Returns the next received byte, -1 if there is none, or -2 if the UART reported an error.
int line_read(void);
// Copies all bytes to the buffer, or none if less than `reserve` bytes would stay free.
bool line_put(const void *bytes, size_t length, size_t reserve);

// A reply is built with reply_text and reply_number, and sent with reply_end, which appends the CRC.
void reply_text(const char *text);
void reply_number(uint64_t number);
void reply_end(void);

// CRC-16 with polynomial 0x1021, initial value 0xffff, not reflected ("CRC-16/CCITT-FALSE").
uint16_t crc16(const void *bytes, size_t length);

#endif
