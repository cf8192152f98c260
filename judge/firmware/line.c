#include "line.h"

#include "rp2040.h"

enum { BUFFER = 65536, REPLY = 256 };
static uint8_t buffer[BUFFER];
static uint32_t put, got;
static char reply[REPLY];
static size_t reply_length;

void line_poll(void) {
    // The UART sends a byte in 10 us, so a few bytes a round are enough, and a round stays short.
    for (int i = 0; i < 8 && put != got && !(REG(UART0_FLAGS) & UART_TX_FULL); i++) {
        REG(UART0_DATA) = buffer[got++ % BUFFER];
    }
}

int line_read(void) {
    if (REG(UART0_FLAGS) & UART_RX_EMPTY) return -1;
    const uint32_t data = REG(UART0_DATA);
    return data & UART_DATA_ERRORS ? -2 : (int)(data & 0xff);
}

bool line_put(const void *bytes, size_t length, size_t reserve) {
    if (BUFFER - (put - got) < length + reserve) return false;
    for (size_t i = 0; i < length; i++) buffer[put++ % BUFFER] = ((const uint8_t *)bytes)[i];
    return true;
}

uint16_t crc16(const void *bytes, size_t length) {
    static uint16_t table[256];
    if (!table[1]) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = i << 8;
            for (int bit = 0; bit < 8; bit++) crc = crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0);
            table[i] = (uint16_t)crc;
        }
    }
    uint32_t crc = 0xffff;
    for (const uint8_t *byte = bytes; length--; byte++) crc = (crc << 8 & 0xffff) ^ table[crc >> 8 ^ *byte];
    return (uint16_t)crc;
}

static void reply_char(char c) {
    if (reply_length < REPLY) reply[reply_length++] = c;
}

void reply_text(const char *text) {
    while (*text) reply_char(*text++);
}

void reply_number(uint64_t number) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count) reply_char(digits[--count]);
}

void reply_end(void) {
    const uint16_t crc = crc16(reply, reply_length);
    reply_char('*');
    for (int shift = 12; shift >= 0; shift -= 4) reply_char("0123456789abcdef"[crc >> shift & 0xf]);
    reply_text("\r\n");
    // Without space there are 64 KiB of unsent bytes. The host repeats a command without a reply.
    (void)line_put(reply, reply_length, 0);
    reply_length = 0;
}
