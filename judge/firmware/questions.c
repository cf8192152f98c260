#include "questions.h"

#include "board.h"
#include "rp2040.h"

// A late refill of the FIFO only makes the pause longer. No result depends on the period, because the samplers measure
// when the level of the pin changed.
static const uint16_t program[] = {
    0x80a0, // 0       pull block
    0xa027, // 1       mov x, osr
    0x0042, // 2 idle: jmp x-- idle    X + 1 cycles
    0x80a0, // 3       pull block
    0xa027, // 4       mov x, osr
    0xe001, // 5       set pins, 1
    0x0046, // 6 on:   jmp x-- on      X + 1 cycles
    0xe000, // 7       set pins, 0     wraps to 0 without a cycle
};
enum { WRAP_TOP = 7 };
enum { PULL_NOBLOCK = 0x8080, SET_PINS_0 = 0xe000, SET_PINDIRS_1 = 0xe081, JMP_0 = 0x0000 };
enum { FIFO_DEPTH = 4 };

void questions_init(void) {
    for (uint32_t i = 0; i < sizeof program / sizeof program[0]; i++) REG(PIO1 + PIO_INSTRUCTION(i)) = program[i];
    REG(PIO1 + PIO_CLKDIV(0)) = 1u << 16;
    REG(PIO1 + PIO_EXECCTRL(0)) = WRAP_TOP << 12;
    REG(PIO1 + PIO_SHIFTCTRL(0)) = PIO_OUT_RIGHT;
    REG(PIO1 + PIO_PINCTRL(0)) = 1u << 26 | PIN_QUESTION << 5;
    REG(PIO1 + PIO_EXECUTE(0)) = SET_PINS_0;
    REG(PIO1 + PIO_EXECUTE(0)) = SET_PINDIRS_1;
}

void questions_start(void) {
    REG(PIO1 + PIO_CTRL) = 1;
}

void questions_stop(void) {
    REG(PIO1 + PIO_CTRL) = PIO_RESTART(0);
    for (int i = 0; i < FIFO_DEPTH; i++) REG(PIO1 + PIO_EXECUTE(0)) = PULL_NOBLOCK;
    REG(PIO1 + PIO_EXECUTE(0)) = SET_PINS_0;
    REG(PIO1 + PIO_EXECUTE(0)) = JMP_0;
}

bool questions_have_space(void) {
    return (REG(PIO1 + PIO_FLEVEL) & 0xf) <= FIFO_DEPTH - 2;
}

void questions_put(uint32_t inactive, uint32_t active) {
    REG(PIO1 + PIO_TXF(0)) = inactive - QUESTION_OVERHEAD_INACTIVE;
    REG(PIO1 + PIO_TXF(0)) = active - QUESTION_OVERHEAD_ACTIVE;
}
