// Decoder and encoder of the protocol, written from PROTOCOL.md, not from the firmware.
export const SYNC = 0xa5;
export const KINDS = { 1: 'answered', 2: 'missed', 3: 'late', 4: 'spurious', 5: 'end' };
const LENGTHS = { 1: 28, 2: 28, 3: 28, 4: 28, 5: 48 };

export function crc16(bytes) {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc;
}

export function withCrc(text) {
  return `${text}*${crc16(Buffer.from(text)).toString(16).padStart(4, '0')}`;
}

function decodeFrame(bytes) {
  const view = new DataView(Uint8Array.from(bytes).buffer);
  const u16 = (at) => view.getUint16(at, true);
  const u32 = (at) => view.getUint32(at, true);
  const kind = KINDS[bytes[1]];
  const common = { kind, number: u32(4), time: Number(view.getBigUint64(12, true)) };
  if (kind === 'end') {
    return {
      ...common, reason: bytes[2], questions: u32(8), answered: u32(20), missed: u32(24), late: u32(28),
      spurious: u32(32), activeBefore: u32(36), lost: u32(40), discarded: u16(44),
    };
  }
  return { ...common, flags: bytes[2], question: u32(8), after: u32(20), lostBefore: u16(24) };
}

// Splits a stream into {text}, {frame, bytes} and {damaged}, from an offset on.
// Returns the offset of the incomplete rest.
export function decodeFrom(stream, offset, items) {
  let at = offset;
  while (at < stream.length) {
    if (stream[at] === SYNC) {
      if (at + 1 === stream.length) break;
      const length = LENGTHS[stream[at + 1]];
      if (length && at + length > stream.length) break;
      const bytes = length ? stream.slice(at, at + length) : [];
      if (length && crc16(bytes.slice(0, -2)) === bytes[length - 2] + 256 * bytes[length - 1]) {
        items.push({ frame: decodeFrame(bytes), bytes });
        at += length;
      } else {
        items.push({ damaged: true });
        at++;
      }
      continue;
    }
    const end = stream.indexOf(10, at);
    if (end < 0) break;
    const line = Buffer.from(stream.slice(at, end)).toString('latin1').trimEnd();
    const text = line.slice(0, -5);
    items.push(withCrc(text) === line ? { text } : { damaged: true });
    at = end + 1;
  }
  return at;
}

export function decode(stream) {
  const items = [];
  decodeFrom(stream, 0, items);
  return items;
}

export function encodeEvent({ kind, flags, number, question, time, after, lostBefore }) {
  const view = new DataView(new ArrayBuffer(28));
  view.setUint8(0, SYNC);
  view.setUint8(1, Number(Object.keys(KINDS).find((key) => KINDS[key] === kind)));
  view.setUint8(2, flags);
  view.setUint32(4, number, true);
  view.setUint32(8, question, true);
  view.setBigUint64(12, BigInt(time), true);
  view.setUint32(20, after, true);
  view.setUint16(24, lostBefore, true);
  const bytes = [...new Uint8Array(view.buffer)];
  const crc = crc16(bytes.slice(0, 26));
  return [...bytes.slice(0, 26), crc & 0xff, crc >> 8];
}
