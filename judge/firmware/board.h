// Pins and clocks of the board.
#ifndef JUDGE_BOARD_H
#define JUDGE_BOARD_H

#include <stdbool.h>
#include <stdint.h>

// GPIO numbers. The connector of the Pico has them side by side: pins 1, 2, 4 and 5; pin 3 is ground.
enum { PIN_TX = 0, PIN_RX = 1, PIN_QUESTION = 2, PIN_ANSWER = 3, PIN_LED = 25 };

enum { CLOCK_HZ = 125000000, TICK_NS = 8, TICKS_PER_US = 125 };

#ifndef BAUD
#define BAUD 1000000
#endif

void board_init(void);
// Sets the active levels of the two pins. Both are inactive afterwards, also if the answer pin is not connected.
void board_set_levels(bool question_low, bool answer_low);
void board_set_led(bool on);
// Microseconds since power-on, modulo 2^32.
uint32_t board_us(void);

#endif
