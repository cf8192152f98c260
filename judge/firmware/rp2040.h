// Registers of the RP2040 that the judge uses. Section numbers refer to the RP2040 datasheet of Raspberry Pi Ltd.
#ifndef JUDGE_RP2040_H
#define JUDGE_RP2040_H

#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(address))
// Aliases of a peripheral register for atomic changes (section 2.1.2).
#define SET(address) REG((address) + 0x2000u)
#define CLEAR(address) REG((address) + 0x3000u)

// Reset controller (section 2.14).
#define RESETS_RESET 0x4000c000u
#define RESETS_DONE 0x4000c008u
#define RESET_IO_BANK0 (1u << 5)
#define RESET_PADS_BANK0 (1u << 8)
#define RESET_PIO0 (1u << 10)
#define RESET_PIO1 (1u << 11)
#define RESET_PLL_SYS (1u << 12)
#define RESET_TIMER (1u << 21)
#define RESET_UART0 (1u << 22)

// Crystal oscillator (section 2.16).
#define XOSC_CTRL 0x40024000u
#define XOSC_STATUS 0x40024004u
#define XOSC_STARTUP 0x4002400cu
#define XOSC_RANGE_1_15MHZ 0xaa0u
#define XOSC_ENABLE (0xfabu << 12)
#define XOSC_STABLE (1u << 31)

// System PLL (section 2.18).
#define PLL_SYS_CS 0x40028000u
#define PLL_SYS_PWR 0x40028004u
#define PLL_SYS_FBDIV 0x40028008u
#define PLL_SYS_PRIM 0x4002800cu
#define PLL_LOCK (1u << 31)
#define PLL_PD (1u << 0)
#define PLL_POSTDIVPD (1u << 3)
#define PLL_VCOPD (1u << 5)

// Clock generators (section 2.15).
#define CLK_REF_CTRL 0x40008030u
#define CLK_REF_SELECTED 0x40008038u
#define CLK_SYS_CTRL 0x4000803cu
#define CLK_SYS_SELECTED 0x40008044u
#define CLK_PERI_CTRL 0x40008048u
#define CLK_REF_XOSC 2u
#define CLK_SYS_AUX 1u
#define CLK_PERI_ENABLE (1u << 11)

// The watchdog divides the reference clock to the 1 us tick of the timer (section 4.7).
#define WATCHDOG_TICK 0x4005802cu
#define WATCHDOG_TICK_ENABLE (1u << 9)

// Timer (section 4.6).
#define TIMER_RAW_LOW 0x40054028u

// Pins (section 2.19).
#define GPIO_CTRL(pin) (0x40014004u + 8u * (pin))
#define PAD(pin) (0x4001c004u + 4u * (pin))
#define FUNCTION_UART 2u
#define FUNCTION_SIO 5u
#define FUNCTION_PIO0 6u
#define FUNCTION_PIO1 7u
#define OUTPUT_INVERTED (1u << 8)
#define INPUT_INVERTED (1u << 16)
#define PAD_INPUT_ENABLE (1u << 6)
#define PAD_DRIVE_4MA (1u << 4)
#define PAD_PULL_UP (1u << 3)
#define PAD_PULL_DOWN (1u << 2)
#define PAD_SCHMITT (1u << 1)
#define PAD_FAST (1u << 0)

// Pins set by the processor (section 2.3.1).
#define SIO_OUT_SET 0xd0000014u
#define SIO_OUT_CLEAR 0xd0000018u
#define SIO_ENABLE_SET 0xd0000024u

// UART (section 4.2).
#define UART0_DATA 0x40034000u
#define UART0_FLAGS 0x40034018u
#define UART0_IBRD 0x40034024u
#define UART0_FBRD 0x40034028u
#define UART0_LCR_H 0x4003402cu
#define UART0_CR 0x40034030u
#define UART_TX_FULL (1u << 5)
#define UART_RX_EMPTY (1u << 4)
#define UART_8BIT_FIFO ((3u << 5) | (1u << 4))
#define UART_ENABLE ((1u << 9) | (1u << 8) | (1u << 0))
#define UART_DATA_ERRORS 0xf00u

// Programmable input and output (section 3.7).
#define PIO0 0x50200000u
#define PIO1 0x50300000u
#define PIO_CTRL 0x000u
#define PIO_FSTAT 0x004u
#define PIO_FDEBUG 0x008u
#define PIO_FLEVEL 0x00cu
#define PIO_TXF(sm) (0x010u + 4u * (sm))
#define PIO_RXF(sm) (0x020u + 4u * (sm))
#define PIO_INSTRUCTION(i) (0x048u + 4u * (i))
#define PIO_CLKDIV(sm) (0x0c8u + 24u * (sm))
#define PIO_EXECCTRL(sm) (0x0ccu + 24u * (sm))
#define PIO_SHIFTCTRL(sm) (0x0d0u + 24u * (sm))
#define PIO_EXECUTE(sm) (0x0d8u + 24u * (sm))
#define PIO_PINCTRL(sm) (0x0dcu + 24u * (sm))
#define PIO_RESTART(sm) (1u << (4u + (sm)))
#define PIO_RX_EMPTY(sm) (1u << (8u + (sm)))
#define PIO_JOIN_RX (1u << 31)
#define PIO_OUT_RIGHT (1u << 19)

#endif
