// A Pico with the firmware in the emulator rp2040js, and a machine that answers its questions.
//
// The emulator does not keep the PIO in step with the processor and lacks some circuits. This class adds them:
// - each cycle runs one step of each enabled state machine; an instruction of the processor takes its number of cycles;
// - inputs reach the PIO after the synchroniser of two cycles (RP2040 datasheet, section 3.5.6.3);
// - the level of the question pin is also its input, as on the chip;
// - the FIFOs of the samplers hold 8 words;
// - the UART sends and receives one byte in 10 bit times, and its FIFO can be full.
import { readFileSync } from 'node:fs';
import { RP2040 } from 'rp2040js';

export const QUESTION = 2;
export const ANSWER = 3;
const SYNCHRONISER = 2;
const CYCLES_PER_BYTE = 1250; // 10 bits at 1 Mbit/s
const BOOT2_IN_RAM = 0x41f00; // where the boot ROM copies the second-stage boot (section 2.8.1)

export class Board {
  constructor(image) {
    this.cycle = 0;
    this.warnings = new Set();
    this.sent = []; // bytes from the judge
    this.serial = 'fast'; // 'fast': the line takes all; 'real': 1 Mbit/s; 'stalled': nothing leaves
    this.loopback = true; // false: the question pin is short-circuited to its inactive level
    this.machine = () => []; // called for each question: [[ticks until the answer pin changes, level], ...]
    this.asked = []; // cycle of each question

    const chip = new RP2040();
    this.chip = chip;
    const log = (name, text) => this.warnings.add(`${name}: ${text}`);
    chip.logger = { debug() {}, info() {}, warn: log, error: log };
    for (const pio of chip.pio) pio.run = () => {};
    // The samplers join their FIFOs (section 3.5.3), so they hold 8 words. The emulator always holds 4.
    for (const machine of chip.pio[0].machines) machine.rxFIFO = new machine.rxFIFO.constructor(8);
    chip.flash.set(readFileSync(image));

    // The boot ROM is not part of the emulator: start at the second-stage boot, as the boot ROM would.
    chip.sram.set(chip.flash.subarray(0, 256), BOOT2_IN_RAM);
    chip.core.SP = 0x20042000;
    chip.core.LR = 0;
    chip.core.PC = 0x20000000 + BOOT2_IN_RAM;

    const uart = chip.uart[0];
    this.toReceive = [];
    this.nextReceive = 0;
    this.sendEnd = 0;
    uart.onByte = (byte) => {
      this.sent.push(byte);
      this.sendEnd = Math.max(this.sendEnd, this.cycle) + CYCLES_PER_BYTE;
    };
    const isFull = () =>
      this.serial === 'stalled' || (this.serial === 'real' && this.sendEnd - this.cycle > 32 * CYCLES_PER_BYTE);
    Object.defineProperty(uart, 'flags', {
      get: () => (uart.rxFIFO.empty ? 0x10 : 0) | (uart.rxFIFO.full ? 0x40 : 0) | (isFull() ? 0x20 : 0),
    });

    this.pins = { [QUESTION]: false, [ANSWER]: false }; // levels outside
    this.events = []; // [cycle, pin, level], in order; for the answer pin outside the chip
    this.inputs = []; // [cycle, pin, level]: what leaves the synchroniser
    this.lastQuestionState = -1;
  }

  setPin(pin, level) {
    if (this.pins[pin] === level) return;
    this.pins[pin] = level;
    this.inputs.push([this.cycle + 1 + SYNCHRONISER, pin, level]);
  }

  // Changes the answer pin so many ticks after the current cycle.
  schedule(ticks, level) {
    this.events.push([this.cycle + ticks, ANSWER, level]);
    this.events.sort((a, b) => a[0] - b[0]);
  }

  updateQuestionPin() {
    const pin = this.chip.gpio[QUESTION];
    const state = (this.chip.pio[1].pinValues << 8) ^ pin.ctrl ^ (this.chip.pio[1].pinDirections << 24);
    if (state === this.lastQuestionState) return;
    this.lastQuestionState = state;
    const isInverted = pin.outputOverride === 1;
    const level = pin.outputEnable ? pin.outputValue : false;
    const wasActive = this.isActive;
    this.isActive = level !== isInverted;
    this.setPin(QUESTION, this.loopback ? level : isInverted);
    if (pin.outputEnable && this.isActive && !wasActive) {
      this.asked.push(this.cycle);
      for (const [ticks, answer] of this.machine(this.asked.length)) this.schedule(ticks, answer);
    }
  }

  oneCycle() {
    const { chip, cycle } = this;
    while (this.inputs.length && this.inputs[0][0] <= cycle) {
      const [, pin, level] = this.inputs.shift();
      chip.gpio[pin].rawInputValue = level;
    }
    for (const pio of chip.pio) {
      if (pio.stopped) continue;
      for (const machine of pio.machines) if (machine.enabled) machine.step();
    }
    this.updateQuestionPin();
    while (this.events.length && this.events[0][0] <= cycle) {
      const [, pin, level] = this.events.shift();
      this.setPin(pin, level);
    }
    this.cycle++;
  }

  // Runs until a condition is true; throws after too many cycles.
  runUntil(condition, limit, what) {
    const end = this.cycle + limit;
    const { core, clock, uart } = this.chip;
    for (let steps = 0; ; steps++) {
      if (steps % 64 === 0 && condition()) return;
      if (this.cycle > end) throw new Error(`no ${what} within ${limit} cycles`);
      const cycles = core.executeInstruction();
      for (let i = 0; i < cycles; i++) this.oneCycle();
      clock.tick(cycles * 8);
      if (this.toReceive.length && this.cycle >= this.nextReceive) {
        uart[0].feedByte(this.toReceive.shift());
        this.nextReceive = this.cycle + CYCLES_PER_BYTE;
      }
    }
  }

  run(cycles) {
    const end = this.cycle + cycles;
    this.runUntil(() => this.cycle >= end, cycles + 1000, 'end');
  }

  type(bytes) {
    this.toReceive.push(...bytes);
  }
}
