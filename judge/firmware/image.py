#!/usr/bin/env python3
"""Writes the CRC of the second-stage boot, or an image of the flash as a UF2 file.

Usage: image.py crc BOOT2.bin
       image.py uf2 IMAGE.bin OUTPUT.uf2

The CRC is described in section 2.8.1.3.1 of the RP2040 datasheet, UF2 in https://github.com/microsoft/uf2.
"""
import struct
import sys

FLASH = 0x10000000
BOOT = 256
RP2040_FAMILY = 0xE48BFF56
FAMILY_PRESENT = 0x2000
PAYLOAD = 256


def crc32(data):
    """CRC-32 with polynomial 0x04c11db7 and initial value 0xffffffff, not reflected, without a final XOR."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc


def write_crc(path):
    with open(path, "rb") as file:
        boot = file.read()[: BOOT - 4]
    with open(path, "wb") as file:
        file.write(boot + struct.pack("<I", crc32(boot)))


def write_uf2(path, output):
    with open(path, "rb") as file:
        image = file.read()
    blocks = -(-len(image) // PAYLOAD)
    with open(output, "wb") as file:
        for block in range(blocks):
            offset = block * PAYLOAD
            head = struct.pack(
                "<8I", 0x0A324655, 0x9E5D5157, FAMILY_PRESENT, FLASH + offset, PAYLOAD, block, blocks, RP2040_FAMILY
            )
            data = image[offset : offset + PAYLOAD].ljust(476, b"\0")
            file.write(head + data + struct.pack("<I", 0x0AB16F30))


{"crc": write_crc, "uf2": write_uf2}[sys.argv[1]](*sys.argv[2:])
