// Tests of the firmware in the emulator. Each check compares with times that the emulated machine knows exactly.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { ANSWER, Board } from './board.mjs';
import { crc16, decode, decodeFrom, encodeEvent, withCrc } from './protocol.mjs';

const path = (name) => new URL(name, import.meta.url).pathname;
const IMAGE = path('../firmware/build/judge.bin');
const TICKS_PER_US = 125;
const ACTIVE_BEFORE = 1;
const DISCARDED = 2;
const BRIEF = 4;
const NO_ANSWER = 0xffffffff;
const COUNT = 1;
const STOP = 2;
const QUESTION_PIN = 3;

const tests = [];
const test = (name, body) => tests.push([name, body]);
let cycles = 0;
let frames = 0;

// A board with helpers that type commands and read what comes back.
class Judge extends Board {
  constructor() {
    super(IMAGE);
    this.decoded = [];
    this.offset = 0;
    this.runUntil(() => this.chip.uart[0].enabled, 300000, 'start-up');
    this.run(2000);
  }

  items() {
    const before = this.decoded.length;
    this.offset = decodeFrom(this.sent, this.offset, this.decoded);
    assert.ok(!this.decoded.slice(before).some((item) => item.damaged), 'damaged items from the judge');
    return this.decoded;
  }

  texts() {
    return this.items().flatMap((item) => item.text ?? []);
  }

  frames() {
    return this.items().flatMap((item) => item.frame ?? []);
  }

  // Types a line and returns the reply.
  command(line) {
    const before = this.texts().length;
    this.type([...Buffer.from(`${line}\n`, 'latin1')]);
    this.runUntil(() => this.toReceive.length === 0, 300000, 'end of the command');
    let length = -1; // decodes only if bytes have come
    const hasReply = () => {
      if (this.sent.length === length) return false;
      length = this.sent.length;
      return this.texts().length > before;
    };
    this.runUntil(hasReply, 200000, `reply to ${line}`);
    return this.texts()[before];
  }

  set(...lines) {
    for (const line of lines) assert.equal(this.command(line), 'ok', line);
  }

  start() {
    this.asked = [];
    this.runStart = this.sent.length;
    this.firstFrame = this.frames().length;
    const reply = this.command('start');
    assert.match(reply, /^ok period=/);
    return reply;
  }

  // Runs until the end frame and returns the frames of the run, after checks that hold for each run.
  finish(limit) {
    let length = -1; // decodes only if bytes have come
    const hasEnded = () => {
      if (this.sent.length === length) return false;
      length = this.sent.length;
      return this.frames().length > this.firstFrame && this.frames().at(-1).kind === 'end';
    };
    this.runUntil(hasEnded, limit, 'end frame');
    const all = this.frames().slice(this.firstFrame);
    const end = all.at(-1);
    const events = all.slice(0, -1);
    const count = (kind) => events.filter((frame) => frame.kind === kind).length;
    assert.equal(end.answered + end.missed + end.late, end.questions, 'each question has one result');
    assert.equal(end.number, events.length + end.lost, 'frames sent and lost');
    if (end.lost === 0) {
      events.forEach((frame, i) => assert.equal(frame.number, i, 'frame numbers'));
      for (const kind of ['answered', 'missed', 'late', 'spurious']) assert.equal(count(kind), end[kind], kind);
      const questions = events.filter((frame) => frame.kind !== 'spurious').map((frame) => frame.question);
      assert.deepEqual(questions, questions.map((_, i) => i + 1), 'one frame a question, in order');
      assert.equal(end.activeBefore, events.filter((f) => f.kind !== 'spurious' && f.flags & ACTIVE_BEFORE).length);
    }
    frames += all.length;
    return { events, end };
  }

  // One run with the answers of a machine.
  measure(machine, limit = 3000000) {
    this.machine = machine;
    this.start();
    return this.finish(limit);
  }

  // The pause between runs, so that the answer pin is inactive again.
  release() {
    this.setPin(ANSWER, false);
    this.run(1000);
  }
}

const pulse = (after, width = 200) => [[after, true], [after + width, false]];
const QUICK = ['period 50us', 'width 1us', 'timeout 40us'];
const PERIOD = 50 * TICKS_PER_US;

test('image: CRC of the second-stage boot, and UF2 blocks', () => {
  const image = readFileSync(IMAGE);
  let crc = 0xffffffff;
  for (const byte of image.subarray(0, 252)) {
    for (let bit = 7; bit >= 0; bit--) crc = ((crc << 1) ^ ((crc >>> 31) ^ ((byte >> bit) & 1) ? 0x04c11db7 : 0)) >>> 0;
  }
  assert.equal(image.readUInt32LE(252), crc);
  const uf2 = readFileSync(path('../firmware/build/judge.uf2'));
  assert.equal(uf2.length, 512 * Math.ceil(image.length / 256));
  for (let at = 0; at < uf2.length; at += 512) {
    const words = Array.from({ length: 8 }, (_, i) => uf2.readUInt32LE(at + 4 * i));
    assert.deepEqual(words, [
      0x0a324655, 0x9e5d5157, 0x2000, 0x10000000 + at / 2, 256, at / 512, uf2.length / 512, 0xe48bff56,
    ]);
    assert.equal(uf2.readUInt32LE(at + 508), 0x0ab16f30);
    const part = image.subarray(at / 2, at / 2 + 256);
    assert.deepEqual(uf2.subarray(at + 32, at + 32 + part.length), part);
  }
});

test('clocks: 125 MHz and 1 Mbit/s', () => {
  const judge = new Judge();
  assert.equal(judge.chip.clkSys, 125e6);
  assert.equal(judge.chip.uart[0].baudRate, 1e6);
  assert.equal(judge.command('version'), 'ok punctual-judge 1');
  // The emulator does not have this register of the flash interface, which the boot code writes.
  assert.deepEqual([...judge.warnings], ['SSI: Unimplemented peripheral write to 0x10: 0x1']);
  return judge;
});

test('answers: each delay from 1 to 300 ticks and 200 random delays are exact', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'random 1us', 'count 500');
  let random = 12345;
  const delays = Array.from({ length: 500 }, (_, i) => {
    random = (Math.imul(random, 1103515245) + 12345) >>> 0;
    return i < 300 ? i + 1 : 1 + (random >>> 8) % (39 * TICKS_PER_US);
  });
  const { events, end } = judge.measure((n) => pulse(delays[n - 1]), 5000000);
  assert.deepEqual(events.map((frame) => frame.kind), Array(500).fill('answered'));
  assert.deepEqual(events.map((frame) => frame.after), delays);
  assert.ok(events.every((frame) => frame.flags === 0));
  // The times of the questions: exact, apart from the start of the run.
  const offset = judge.asked[0] - events[0].time;
  assert.deepEqual(events.map((frame) => frame.time + offset), judge.asked);
  const periods = judge.asked.slice(1).map((cycle, i) => cycle - judge.asked[i]);
  assert.ok(Math.min(...periods) >= PERIOD && Math.max(...periods) <= PERIOD + TICKS_PER_US, 'range of the periods');
  assert.ok(new Set(periods).size > 100, 'the periods are random');
  // Both cases occur: a question in an odd and in an even cycle, with an answer after an odd and an even time.
  assert.equal(new Set(events.map((frame) => `${frame.time % 2} ${frame.after % 2}`)).size, 4);
  assert.deepEqual([end.reason, end.answered, end.discarded], [COUNT, 500, 0]);
  assert.equal(end.time, events.at(-1).time + PERIOD + TICKS_PER_US);
  return judge;
});

test('random answers: the same results as a model of the rules', () => {
  const judge = new Judge();
  const count = 300;
  const period = 100 * TICKS_PER_US;
  const timeout = 40 * TICKS_PER_US;
  judge.set('period 100us', 'width 1us', 'timeout 40us', `count ${count}`);
  let random = 99;
  const below = (limit) => ((random = (Math.imul(random, 1664525) + 1013904223) >>> 0) >>> 16) % limit;
  // Up to three pulses after each question. The last can still be active when the next question comes.
  const pulses = Array.from({ length: count }, () => {
    const list = [];
    let at = 700;
    for (let left = below(4); left > 0; left--) {
      const start = at + below(6000);
      const stop = Math.min(start + 40 + below(6000), period + 500);
      if (start > period - 1 || stop < start + 40) break;
      list.push([start, stop]);
      at = stop + 40;
    }
    return list;
  });
  const expected = [];
  let wasActive = false;
  pulses.forEach((list, i) => {
    const flags = wasActive ? ACTIVE_BEFORE : 0;
    const question = i + 1;
    const [first, ...others] = list;
    if (first) expected.push([first[0] <= timeout ? 'answered' : 'late', question, first[0], flags]);
    for (const [start] of others) expected.push(['spurious', question, start, 0]);
    if (!first) expected.push(['missed', question, NO_ANSWER, flags]);
    wasActive = list.length > 0 && list.at(-1)[1] > period;
  });
  const { events } = judge.measure((n) => pulses[n - 1].flatMap(([start, stop]) => pulse(start, stop - start)), 5e6);
  assert.deepEqual(events.map((frame) => [frame.kind, frame.question, frame.after, frame.flags]), expected);
  const kinds = new Set(expected.map(([kind, , , flags]) => `${kind} ${flags}`));
  assert.equal(kinds.size, 7, 'each kind of result occurs, with and without flag 1');
  return judge;
});

test('period: exact without a random part', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'period 123456ns', 'count 20');
  judge.measure(() => pulse(100));
  const periods = judge.asked.slice(1).map((cycle, i) => cycle - judge.asked[i]);
  assert.deepEqual(periods, Array(19).fill(123456 / 8));
  return judge;
});

test('misses and late answers: none is dropped', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 8');
  const limit = 40 * TICKS_PER_US;
  const answers = [limit - 1, limit, limit + 1, null, PERIOD - 1, 10, null, null];
  const { events } = judge.measure((n) => (answers[n - 1] === null ? [] : pulse(answers[n - 1])));
  assert.deepEqual(
    // The answer in the last tick of question 5 is active when question 6 comes.
    events.map((frame) => [frame.kind, frame.after, frame.flags]),
    [
      ['answered', limit - 1, 0], ['answered', limit, 0], ['late', limit + 1, 0], ['missed', NO_ANSWER, 0],
      ['late', PERIOD - 1, 0], ['missed', NO_ANSWER, ACTIVE_BEFORE], ['missed', NO_ANSWER, 0],
      ['missed', NO_ANSWER, 0],
    ],
  );
  return judge;
});

test('misses: all of 200 questions', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 200');
  const { events, end } = judge.measure(() => []);
  assert.ok(events.every((frame) => frame.kind === 'missed' && frame.after === NO_ANSWER));
  assert.deepEqual([end.missed, events.length], [200, 200]);
  return judge;
});

test('late answer to the last question, and answers after the end of the run', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 1');
  const after = (ticks) => judge.measure(() => pulse(ticks)).events.map((frame) => [frame.kind, frame.after]);
  assert.deepEqual(after(PERIOD), [['late', PERIOD]]);
  judge.release();
  assert.deepEqual(after(PERIOD + 1), [['missed', NO_ANSWER]]);
  judge.run(10000);
  assert.deepEqual(after(10), [['answered', 10]]);
  return judge;
});

test('spurious edges: before the first question, and second answers', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'period 500us', 'count 3');
  judge.machine = (n) => (n === 2 ? [...pulse(100), ...pulse(500), ...pulse(5100)] : pulse(100));
  judge.start();
  const early = judge.cycle + 200;
  for (const [ticks, level] of pulse(200)) judge.schedule(ticks, level);
  const { events, end } = judge.finish(3000000);
  assert.deepEqual(
    events.map((frame) => [frame.kind, frame.question, frame.after]),
    [
      ['spurious', 0, NO_ANSWER], ['answered', 1, 100], ['answered', 2, 100], ['spurious', 2, 500],
      ['spurious', 2, 5100], ['answered', 3, 100],
    ],
  );
  const offset = judge.asked[0] - events[1].time;
  assert.equal(events[0].time + offset, early);
  assert.equal(events[3].time, events[2].time + 500);
  assert.equal(end.spurious, 3);
  return judge;
});

test('an answer pin that is active when the question comes is not an answer', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 4');
  judge.setPin(ANSWER, true);
  judge.run(1000);
  // 1: active from before the start. 2: still active, inactive at 500, answers at 700. 3: changes in the tick of the
  // question, which is too early for an answer. 4: one tick before the question.
  const machine = (n) =>
    ({ 1: [], 2: [[500, false], ...pulse(700), [PERIOD, true]], 3: [[300, false], [PERIOD - 1, true]], 4: [] })[n];
  const { events, end } = judge.measure(machine);
  assert.deepEqual(
    events.map((frame) => [frame.kind, frame.question, frame.after, frame.flags]),
    [
      ['missed', 1, NO_ANSWER, ACTIVE_BEFORE], ['answered', 2, 700, ACTIVE_BEFORE],
      ['spurious', 2, PERIOD, 0], ['late', 3, PERIOD - 1, ACTIVE_BEFORE], ['missed', 4, NO_ANSWER, ACTIVE_BEFORE],
    ],
  );
  assert.equal(end.activeBefore, 4);
  return judge;
});

test('a wire from the question pin to the answer pin: both change in the same tick', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 20');
  const { events, end } = judge.measure(() => pulse(0, TICKS_PER_US));
  // An edge in the tick of a question counts for the question before.
  assert.deepEqual(
    events.map((frame) => [frame.kind, frame.question, frame.after]),
    [
      ['spurious', 0, NO_ANSWER],
      ...Array.from({ length: 19 }, (_, i) => ['late', i + 1, PERIOD]),
      ['missed', 20, NO_ANSWER],
    ],
  );
  assert.equal(events[0].time, events[1].time);
  assert.equal(end.activeBefore, 20);
  return judge;
});

test('brief answers: pulses of one and of two cycles are exact', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 40');
  const { events } = judge.measure((n) => pulse(1000 + n, n <= 20 ? 1 : 2));
  assert.deepEqual(events.map((frame) => [frame.kind, frame.after]), events.map((_, i) => ['answered', 1001 + i]));
  // One cycle is seen by one of the two samplers, two cycles by both.
  assert.deepEqual(events.map((frame) => frame.flags), events.map((_, i) => (i < 20 ? BRIEF : 0)));
  return judge;
});

test('active levels: question and answer active low', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 20', 'question low', 'answer low');
  judge.setPin(ANSWER, true);
  judge.run(1000);
  const { events } = judge.measure((n) => [[70 + n, false], [400, true]]);
  assert.deepEqual(events.map((frame) => [frame.kind, frame.after]), events.map((_, i) => ['answered', 71 + i]));
  assert.equal(judge.asked.length, 20);
  return judge;
});

test('counter: wraps between a question and its answer, and beyond 32 bits', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 1');
  const startUp = judge.measure(() => pulse(10)).events[0].time - PERIOD;
  // The 32-bit tick wraps 125000 ticks after the start. Ask just before.
  const question = 125000 - 56;
  judge.set('period 992us');
  const period = 992 * TICKS_PER_US;
  judge.set('random 0', `period ${(question - startUp) * 8}ns`);
  assert.ok(period < question);
  const before = judge.measure(() => pulse(100)).events[0];
  assert.equal(before.after, 100);
  assert.ok(before.time < 125000 && before.time + 100 > 125000, `question at ${before.time}`);

  // Move all counters by 2^31 - 2^25 ticks (17 s) after each question, as if the time had passed.
  judge.set('period 100us', 'count 6');
  const jump = 2 ** 31 - 2 ** 25;
  let jumps = 0;
  judge.machine = (n) => pulse(100 + n);
  judge.start();
  for (let n = 1; n <= 5; n++) {
    judge.runUntil(() => judge.frames().length >= judge.firstFrame + n, 100000, 'answer');
    for (const sampler of judge.chip.pio[0].machines) sampler.x = (sampler.x - jump / 2) >>> 0;
    jumps++;
  }
  const { events, end } = judge.finish(1000000);
  assert.deepEqual(events.map((frame) => [frame.kind, frame.after]), events.map((_, i) => ['answered', 101 + i]));
  const offset = judge.asked[0] - events[0].time;
  assert.deepEqual(events.map((frame, i) => frame.time + offset - i * jump), judge.asked);
  assert.ok(events.at(-1).time > 2 ** 33);
  assert.equal(jumps, 5);
  assert.equal(end.answered, 6);
  return judge;
});

test('stop: an endless run ends, its last question is closed', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 0');
  judge.machine = (n) => (n % 3 ? pulse(100 + n) : []);
  judge.start();
  judge.run(30 * PERIOD);
  assert.equal(judge.command('period 1ms'), 'error: running: only stop, show and version are allowed');
  assert.equal(judge.command('start'), 'error: running: only stop, show and version are allowed');
  judge.set('stop');
  const asked = judge.asked.length;
  const { events, end } = judge.finish(100000);
  judge.run(5 * PERIOD);
  assert.equal(judge.asked.length, asked, 'no question after stop');
  assert.deepEqual([end.reason, end.questions], [STOP, asked]);
  events.forEach((frame, i) => {
    const n = i + 1;
    assert.deepEqual([frame.kind, frame.after], n % 3 ? ['answered', 100 + n] : ['missed', NO_ANSWER]);
  });
  // Nothing is left over for the next run.
  judge.set('count 5');
  const again = judge.measure((n) => pulse(n * 10));
  assert.deepEqual(again.events.map((frame) => frame.after), [10, 20, 30, 40, 50]);
  judge.set('stop');
  return judge;
});

test('stop: before the first question', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'period 10ms', 'count 7');
  judge.start();
  judge.set('stop');
  const { end } = judge.finish(2000000);
  assert.deepEqual([end.reason, end.questions, end.time, judge.asked.length], [STOP, 0, 0, 0]);
  return judge;
});

test('serial line too slow: frames are counted as lost, and the end frame still comes', () => {
  const judge = new Judge();
  const count = 1300; // with two frames each; the buffer has space for 2304 frames
  judge.set(...QUICK, 'period 60us', `count ${count}`);
  judge.machine = () => [...pulse(50), ...pulse(1000)];
  judge.start();
  judge.serial = 'stalled';
  // Decoding is not possible without bytes, so count the questions instead. Then let some bytes out during the run.
  judge.runUntil(() => judge.asked.length >= 1250, 1600 * PERIOD, 'question 1250');
  judge.serial = 'real';
  judge.runUntil(() => judge.asked.length >= count, 200 * PERIOD, 'last question');
  judge.run(2 * PERIOD);
  judge.serial = 'fast';
  const { events, end } = judge.finish(10000000);
  assert.ok(end.lost > 100, `lost ${end.lost}`);
  assert.deepEqual([end.questions, end.answered, end.spurious], [count, count, count]);
  // The gaps between the frame numbers are the losses that later frames and the end frame report.
  let next = 0;
  let reported = 0;
  for (const frame of events) {
    assert.equal(frame.number - next, frame.lostBefore);
    reported += frame.lostBefore;
    next = frame.number + 1;
  }
  assert.ok(reported > 0, 'a later frame reports losses');
  assert.equal(reported + end.number - next, end.lost);
  return judge;
});

test('serial line at 1 Mbit/s: 320 us a question are kept up with', () => {
  const judge = new Judge();
  judge.serial = 'real';
  judge.set('period 320us', 'width 1us', 'timeout 300us', 'count 60');
  const { events, end } = judge.measure((n) => pulse(1000 + n), 60 * 50000);
  assert.deepEqual(events.map((frame) => frame.after), events.map((_, i) => 1001 + i));
  assert.equal(end.lost, 0);
  return judge;
});

test('a burst of edges that the samplers cannot hold is reported', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'period 500us', 'count 3');
  const burst = Array.from({ length: 100 }, (_, i) => pulse(100 + 40 * i, 20)).flat();
  const { events, end } = judge.measure((n) => (n === 2 ? burst : pulse(100)));
  assert.ok(end.discarded > 0);
  assert.ok(events.some((frame) => frame.flags & DISCARDED));
  const results = events.filter((frame) => frame.kind !== 'spurious').map((frame) => [frame.kind, frame.after]);
  assert.deepEqual(results, Array(3).fill(['answered', 100]));
  return judge;
});

test('edges 40 ticks apart are all recorded if the samplers can hold them', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 10');
  const { events, end } = judge.measure(() => [...pulse(100, 20), ...pulse(140, 20)]);
  const pairs = events.map((frame) => [frame.kind, frame.after]);
  assert.deepEqual(pairs, Array(10).fill([['answered', 100], ['spurious', 140]]).flat());
  assert.equal(end.discarded, 0);
  return judge;
});

test('question pin with a short circuit: the run ends with the reason', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 10');
  judge.loopback = false;
  const { events, end } = judge.measure(() => []);
  assert.deepEqual([events.length, end.reason, end.questions], [0, QUESTION_PIN, 0]);
  return judge;
});

test('commands: settings, limits and errors', () => {
  const judge = new Judge();
  const initial =
    'ok period=1000000 random=0 width=10000 timeout=900000 count=1000 seed=1 question=high answer=high';
  assert.equal(judge.command('show'), initial);
  for (const [line, reply] of [
    ['', null],
    ['peroid 1ms', 'error: unknown command'],
    ['period', 'error: expected a time, e.g. 500us'],
    ['period x', 'error: expected a time, e.g. 500us'],
    ['period 5 min', 'error: unit must be ns, us, ms or s'],
    ['period 49us', 'error: time must be 50000 to 10000000000 ns'],
    ['period 11s', 'error: time must be 50000 to 10000000000 ns'],
    ['period 999999999999s', 'error: time must be 50000 to 10000000000 ns'],
    ['period 18446744073709551617', 'error: expected a time, e.g. 500us'],
    ['period 50001ns', 'error: time must be a multiple of 8 ns'],
    ['count 4294967296', 'error: expected a number, 0 to 4294967295'],
    ['count 12x', 'error: expected a number, 0 to 4294967295'],
    ['seed 0', 'error: expected a number, 1 to 4294967295'],
    ['answer up', 'error: level must be high or low'],
    ['start now', 'error: unknown command'],
    ['count\x01 5', 'error: damaged line'],
    ['count \xb5', 'error: damaged line'],
    ['x'.repeat(81), 'error: line is longer than 80 characters'],
  ]) {
    if (reply !== null) assert.equal(judge.command(line), reply, line);
  }
  assert.equal(judge.command('show'), initial, 'errors change nothing');
  judge.set('timeout 2ms');
  assert.equal(judge.command('start'), 'error: timeout must not exceed period');
  judge.set('timeout 900us', 'width 1ms');
  assert.equal(judge.command('start'), 'error: width must be at least 1 us less than period');
  judge.set('period 10s', 'random 8');
  assert.equal(judge.command('start'), 'error: period and random must not exceed 10 s together');
  judge.set('period 2s', 'random 8000000000', 'width 1us', 'timeout 8', 'count 4294967295', 'seed 7', 'answer low');
  assert.equal(
    judge.command('show'),
    'ok period=2000000000 random=8000000000 width=1000 timeout=8 count=4294967295 seed=7 question=high answer=low',
  );
  return judge;
});

test('commands: a damaged line is refused', () => {
  const judge = new Judge();
  judge.set('count 10', withCrc('count 20'));
  assert.equal(judge.command('count 30'), 'error: missing CRC');
  const good = withCrc('period 2ms');
  for (let i = 0; i < good.length; i++) {
    const bytes = Buffer.from(good);
    bytes[i] ^= i % 2 ? 1 : 2;
    assert.match(judge.command(bytes.toString('latin1')), /^error: /, bytes.toString('latin1'));
    assert.match(judge.command(good.slice(0, i) + good.slice(i + 1)), /^error: /, `byte ${i} is missing`);
  }
  assert.match(judge.command(withCrc('show')), / timeout=900000 count=20 /);
  assert.match(judge.command(withCrc('show')), /^ok period=1000000 /);
  return judge;
});

test('frames: a damaged or missing byte is noticed', () => {
  const judge = new Judge();
  judge.set(...QUICK, 'count 3');
  judge.measure((n) => pulse(n));
  const stream = judge.sent.slice(judge.sent.indexOf(0xa5, judge.runStart));
  const whole = JSON.stringify(decode(stream).map((item) => item.frame ?? item.text));
  for (let i = 0; i < stream.length; i++) {
    const changed = [...stream];
    changed[i] ^= 0x10;
    const missing = [...stream.slice(0, i), ...stream.slice(i + 1)];
    for (const received of [changed, missing]) {
      const items = decode(received);
      const isNoticed =
        items.some((item) => item.damaged) || items.at(-1)?.frame?.kind !== 'end' || items.length !== 4;
      assert.ok(isNoticed, `byte ${i}`);
      assert.notEqual(JSON.stringify(items.map((item) => item.frame ?? item.text)), whole);
    }
  }
  return judge;
});

test('PROTOCOL.md: the example frames', () => {
  const judge = new Judge();
  const text = readFileSync(path('../PROTOCOL.md'), 'utf8');
  const [event, end] = [...text.matchAll(/```hex\n([^`]*)```/g)].map((match) =>
    match[1].trim().split(/\s+/).map((byte) => parseInt(byte, 16)),
  );
  const start = judge.sent.length;
  judge.set('example');
  judge.run(5000);
  const items = decode(judge.sent.slice(start)).filter((item) => item.frame);
  assert.deepEqual(items.map((item) => item.bytes), [event, end]);
  const fields = {
    kind: 'late', flags: ACTIVE_BEFORE, number: 41, question: 42, time: 5250017, after: 12501, lostBefore: 3,
  };
  assert.deepEqual(items[0].frame, fields);
  assert.deepEqual(encodeEvent(fields), event);
  assert.deepEqual(items[1].frame, {
    kind: 'end', reason: COUNT, number: 1003, questions: 1000, time: 125125000, answered: 990, missed: 7, late: 3,
    spurious: 3, activeBefore: 1, lost: 3, discarded: 0,
  });
  assert.equal(crc16(Buffer.from('123456789')), 0x29b1, 'check value of this CRC');
  return judge;
});

const only = process.argv[2];
let failed = 0;
let passed = 0;
for (const [name, body] of tests) {
  if (only && !name.includes(only)) continue;
  const begin = Date.now();
  try {
    const judge = body();
    cycles += judge?.cycle ?? 0;
    passed++;
    console.log(`ok    ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
console.log(
  `judge: ${passed} tests passed, ${failed} failed; ${frames} frames checked, ` +
    `${(cycles * 8e-9).toFixed(3)} s of the chip emulated`,
);
process.exit(failed ? 1 : 0);
