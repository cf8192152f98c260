/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Marks the cycles of a real-time thread for `punctual measure process`.
 *
 *     #include "punctual.h"
 *
 *     for (;;) {
 *         wait_for_next_period();
 *         PUNCTUAL_CYCLE_BEGIN();
 *         work();
 *         PUNCTUAL_CYCLE_END();
 *     }
 *
 * Without punctual, each mark is one instruction that does nothing. There is no library. The marks are USDT probes of
 * the provider `punctual`, which perf, bpftrace and SystemTap find, too. They need Linux and GCC or Clang, and compile
 * to nothing elsewhere.
 *
 * The format of the notes is the one of SystemTap, version 3:
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#ifndef PUNCTUAL_H
#define PUNCTUAL_H

/* Marks the start of a cycle of the calling thread. */
#define PUNCTUAL_CYCLE_BEGIN() PUNCTUAL_MARK_("cycle_begin")

/* Marks the end of a cycle of the calling thread. A cycle without this mark ends where the next one begins. */
#define PUNCTUAL_CYCLE_END() PUNCTUAL_MARK_("cycle_end")

#if defined(__linux__) && defined(__ELF__) && defined(__GNUC__)

#ifdef __LP64__
#define PUNCTUAL_ADDRESS_ ".8byte "
#else
#define PUNCTUAL_ADDRESS_ ".4byte "
#endif

/* The note contains the address of the instruction, that of the section .stapsdt.base (so that readers notice a moved
 * file), no semaphore, the provider, the name, and no arguments. */
#define PUNCTUAL_MARK_(name)                                                                                           \
    __asm__ __volatile__("990: nop\n"                                                                                  \
                         "    .pushsection .note.stapsdt, \"?\", \"note\"\n"                                           \
                         "    .balign 4\n"                                                                             \
                         "    .4byte 992f - 991f, 994f - 993f, 3\n"                                                    \
                         "991: .asciz \"stapsdt\"\n"                                                                   \
                         "992: .balign 4\n"                                                                            \
                         "993: " PUNCTUAL_ADDRESS_ "990b\n"                                                            \
                         "    " PUNCTUAL_ADDRESS_ "_.stapsdt.base\n"                                                   \
                         "    " PUNCTUAL_ADDRESS_ "0\n"                                                                \
                         "    .asciz \"punctual\"\n"                                                                   \
                         "    .asciz \"" name "\"\n"                                                                   \
                         "    .asciz \"\"\n"                                                                           \
                         "994: .balign 4\n"                                                                            \
                         "    .popsection\n"                                                                           \
                         "    .ifndef _.stapsdt.base\n"                                                                \
                         "    .pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"               \
                         "    .weak _.stapsdt.base\n"                                                                  \
                         "    .hidden _.stapsdt.base\n"                                                                \
                         "_.stapsdt.base: .space 1\n"                                                                  \
                         "    .size _.stapsdt.base, 1\n"                                                               \
                         "    .popsection\n"                                                                           \
                         "    .endif\n" ::                                                                             \
                             : "memory")

#else

#define PUNCTUAL_MARK_(name) ((void)0)

#endif

#endif
