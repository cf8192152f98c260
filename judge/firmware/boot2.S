// Second-stage boot: the first 256 bytes of the flash. The boot ROM copies them to RAM, checks their CRC-32 (the last
// four bytes, which image.py computes) and runs them (RP2040 datasheet, section 2.8.1).
// It sets the flash interface to plain serial reads (command 03h), which each SPI NOR flash understands. Speed does not
// matter, because the firmware copies itself to RAM.

    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .equ SSI, 0x18000000            // section 4.10
    .equ CTRLR0, 0x00
    .equ CTRLR1, 0x04
    .equ SSIENR, 0x08
    .equ SER, 0x10
    .equ BAUDR, 0x14
    .equ SPI_CTRLR0, 0xf4
    .equ VECTORS, 0x10000100        // directly after this code
    .equ VTOR, 0xe000ed08

    .section .boot2, "ax"
    .global boot2
    .thumb_func
boot2:
    ldr r0, =SSI
    movs r1, #0
    str r1, [r0, #SSIENR]           // the registers can only be changed while the interface is disabled
    movs r2, #4
    str r2, [r0, #BAUDR]            // 125 MHz / 4; command 03h is allowed up to 50 MHz on the flash of the Pico
    ldr r2, =(31 << 16) | (3 << 8)  // 32 bits a frame, one data line, mode "EEPROM read"
    str r2, [r0, #CTRLR0]
    str r1, [r0, #CTRLR1]           // one frame a read
    ldr r2, =(0x03 << 24) | (2 << 8) | (6 << 2) // command 03h, 8 bits of command, 24 bits of address
    ldr r3, =SSI + SPI_CTRLR0
    str r2, [r3]
    movs r1, #1
    str r1, [r0, #SER]
    str r1, [r0, #SSIENR]

    ldr r0, =VECTORS
    ldr r1, =VTOR
    str r0, [r1]
    ldmia r0!, {r1, r2}
    mov sp, r1
    bx r2
    .ltorg
