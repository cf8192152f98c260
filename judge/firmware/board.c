#include "board.h"

#include "rp2040.h"

// The crystal of the Pico has 12 MHz: 12 MHz * 125 / (6 * 2) = 125 MHz. The PLL runs at 1500 MHz, within its range of
// 750 to 1600 MHz (section 2.18.2).
enum { CRYSTAL_HZ = 12000000, PLL_FEEDBACK = 125, PLL_DIVIDER_1 = 6, PLL_DIVIDER_2 = 2 };
_Static_assert(CRYSTAL_HZ / 1000 * PLL_FEEDBACK / (PLL_DIVIDER_1 * PLL_DIVIDER_2) == CLOCK_HZ / 1000, "PLL settings");

// Blocks can be in any state, because not each restart resets them.
static void reset_blocks(uint32_t blocks) {
    SET(RESETS_RESET) = blocks;
    CLEAR(RESETS_RESET) = blocks;
    while ((REG(RESETS_DONE) & blocks) != blocks) {
    }
}

static void init_clocks(void) {
    REG(XOSC_CTRL) = XOSC_RANGE_1_15MHZ;
    REG(XOSC_STARTUP) = (CRYSTAL_HZ / 1000 + 128) / 256; // 1 ms, in units of 256 periods
    REG(XOSC_CTRL) = XOSC_ENABLE | XOSC_RANGE_1_15MHZ;
    while (!(REG(XOSC_STATUS) & XOSC_STABLE)) {
    }

    // The system must not run from the PLL during its reset.
    CLEAR(CLK_SYS_CTRL) = CLK_SYS_AUX;
    while (REG(CLK_SYS_SELECTED) != 1u) {
    }
    reset_blocks(RESET_PLL_SYS);
    REG(PLL_SYS_CS) = 1; // reference divider
    REG(PLL_SYS_FBDIV) = PLL_FEEDBACK;
    CLEAR(PLL_SYS_PWR) = PLL_PD | PLL_VCOPD;
    while (!(REG(PLL_SYS_CS) & PLL_LOCK)) {
    }
    REG(PLL_SYS_PRIM) = (PLL_DIVIDER_1 << 16) | (PLL_DIVIDER_2 << 12);
    CLEAR(PLL_SYS_PWR) = PLL_POSTDIVPD;

    REG(CLK_REF_CTRL) = CLK_REF_XOSC;
    while (REG(CLK_REF_SELECTED) != 1u << CLK_REF_XOSC) {
    }
    // The auxiliary source must be chosen before the switch to it (section 2.15.3.2). Its value 0 is the system PLL.
    REG(CLK_SYS_CTRL) = 0;
    REG(CLK_SYS_CTRL) = CLK_SYS_AUX;
    while (REG(CLK_SYS_SELECTED) != 1u << CLK_SYS_AUX) {
    }
    REG(CLK_PERI_CTRL) = CLK_PERI_ENABLE; // from the system clock
    REG(WATCHDOG_TICK) = WATCHDOG_TICK_ENABLE | (CRYSTAL_HZ / 1000000);
}

void board_init(void) {
    init_clocks();
    reset_blocks(RESET_IO_BANK0 | RESET_PADS_BANK0 | RESET_PIO0 | RESET_PIO1 | RESET_TIMER | RESET_UART0);

    // Divider in units of 1/64, rounded (section 4.2.3.2.1).
    const uint32_t divider = (4u * CLOCK_HZ + BAUD / 2) / BAUD;
    REG(UART0_IBRD) = divider >> 6;
    REG(UART0_FBRD) = divider & 63;
    REG(UART0_LCR_H) = UART_8BIT_FIFO;
    REG(UART0_CR) = UART_ENABLE;
    REG(PAD(PIN_TX)) = PAD_INPUT_ENABLE | PAD_DRIVE_4MA | PAD_SCHMITT;
    // A pull-up, so that the line is idle if nothing is connected.
    REG(PAD(PIN_RX)) = PAD_INPUT_ENABLE | PAD_PULL_UP | PAD_SCHMITT;
    REG(GPIO_CTRL(PIN_TX)) = FUNCTION_UART;
    REG(GPIO_CTRL(PIN_RX)) = FUNCTION_UART;

    REG(SIO_OUT_CLEAR) = 1u << PIN_LED;
    REG(SIO_ENABLE_SET) = 1u << PIN_LED;
    REG(GPIO_CTRL(PIN_LED)) = FUNCTION_SIO;
}

void board_set_levels(bool question_low, bool answer_low) {
    // The input of the question pin stays enabled: the judge measures when the level of the pin really changed.
    REG(PAD(PIN_QUESTION)) = PAD_INPUT_ENABLE | PAD_DRIVE_4MA | PAD_SCHMITT | PAD_FAST;
    REG(GPIO_CTRL(PIN_QUESTION)) = FUNCTION_PIO1 | (question_low ? OUTPUT_INVERTED | INPUT_INVERTED : 0);
    REG(PAD(PIN_ANSWER)) = PAD_INPUT_ENABLE | PAD_SCHMITT | (answer_low ? PAD_PULL_UP : PAD_PULL_DOWN);
    REG(GPIO_CTRL(PIN_ANSWER)) = FUNCTION_PIO0 | (answer_low ? INPUT_INVERTED : 0);
}

void board_set_led(bool on) {
    REG(on ? SIO_OUT_SET : SIO_OUT_CLEAR) = 1u << PIN_LED;
}

uint32_t board_us(void) {
    return REG(TIMER_RAW_LOW);
}
