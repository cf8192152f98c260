//! A frame laid out once, and patched in place for each sending.

use crate::{
    Format, Mac, Payload, Tci,
    avtp::{CIP, HEADER as AVTP_HEADER, presentation},
    ethernet::{AVTP, HEADER, TAG, VLAN},
    payload::{LENGTH, SENT},
};

/// Bytes of a sample, 32 bits in both formats.
const SAMPLE: usize = 4;
/// Channels.
const STEREO: usize = 2;
/// Fewest samples of a channel that have room for our payload.
pub const FEWEST_SAMPLES: u8 = LENGTH.div_ceil(SAMPLE * STEREO) as u8;
/// Where AVTP's header begins.
const PACKET: usize = HEADER + TAG;

/// A stereo stream at 48 kHz, as its talker sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// From whom.
    pub source: Mac,
    /// To whom.
    pub destination: Mac,
    /// Priority and VLAN.
    pub tci: Tci,
    /// Which stream.
    pub stream_id: u64,
    /// How samples are packed.
    pub format: Format,
    /// Samples of a channel in each frame, [`FEWEST_SAMPLES`] to 255; fewer are taken for that.
    pub samples: u8,
}

/// A frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    bytes: Box<[u8]>,
    format: Format,
    samples: u8,
}

/// Length of a frame without its check sequence, bytes.
#[must_use]
pub fn length(format: Format, samples: u8) -> usize {
    PACKET + format.samples_at() + usize::from(samples.max(FEWEST_SAMPLES)) * SAMPLE * STEREO
}

impl Stream {
    /// The stream's frame, before anything is patched. This allocates, patching does not.
    #[must_use]
    pub fn frame(&self) -> Frame {
        let samples = self.samples.max(FEWEST_SAMPLES);
        let mut bytes = vec![0; length(self.format, samples)];
        let (ethernet, packet) = bytes.split_at_mut(PACKET);
        ethernet[..6].copy_from_slice(&self.destination);
        ethernet[6..12].copy_from_slice(&self.source);
        ethernet[12..14].copy_from_slice(&VLAN.to_be_bytes());
        ethernet[14..16].copy_from_slice(&self.tci.to_bits().to_be_bytes());
        ethernet[16..].copy_from_slice(&AVTP.to_be_bytes());
        packet[0] = self.format.subtype();
        // Stream id and timestamp are valid, version 0.
        packet[1] = 0x81;
        packet[4..12].copy_from_slice(&self.stream_id.to_be_bytes());
        let data_length = (packet.len() - AVTP_HEADER) as u16;
        packet[20..22].copy_from_slice(&data_length.to_be_bytes());
        match self.format {
            Format::Aaf => lay_aaf(packet),
            Format::Iec61883 => lay_iec_61883(packet),
        }
        Frame { bytes: bytes.into(), format: self.format, samples }
    }
}

/// AAF: integers of 32 bits, 48 kHz.
fn lay_aaf(packet: &mut [u8]) {
    const INT_32: u8 = 2;
    const RATE_48_KHZ: u8 = 5;
    packet[16] = INT_32;
    packet[17] = RATE_48_KHZ << 4;
    packet[18] = STEREO as u8;
    packet[19] = 8 * SAMPLE as u8;
}

/// IEC 61883-6: AM824 at 48 kHz, with the CIP header in front of the samples.
fn lay_iec_61883(packet: &mut [u8]) {
    // Tag 1: a CIP header follows. Channel 31, transaction code 0xA: as AVTP asks where there is no FireWire.
    packet[22] = 1 << 6 | 31;
    packet[23] = 0xa << 4;
    let source_elsewhere = 0x3f;
    let second_quadlet_of_audio = 0x80 | 0x10;
    let am824_at_48_khz = 0x02;
    packet[AVTP_HEADER..AVTP_HEADER + CIP].copy_from_slice(&[
        source_elsewhere,
        STEREO as u8,
        0,
        0,
        second_quadlet_of_audio,
        am824_at_48_khz,
        // No time here: the presentation time of AVTP stands in for it.
        0xff,
        0xff,
    ]);
}

impl Frame {
    /// Where the count of data blocks stands in a CIP header.
    const DBC: usize = PACKET + AVTP_HEADER + 3;

    /// Gives the frame its number, its presentation time (its slot and `transit_ns`) and our payload.
    #[inline]
    pub fn patch(&mut self, payload: &Payload, transit_ns: u64) {
        let due_ns = payload.scheduled_ns.wrapping_add(transit_ns as i64);
        self.bytes[PACKET + 2] = payload.seq as u8;
        self.bytes[PACKET + 12..PACKET + 16].copy_from_slice(&presentation(due_ns).to_be_bytes());
        if self.format == Format::Iec61883 {
            self.bytes[Self::DBC] = (payload.seq as u8).wrapping_mul(self.samples);
        }
        let at = self.payload_at();
        self.bytes[at..at + LENGTH].copy_from_slice(&payload.to_bytes());
    }

    /// Says when it is sent: [`Payload::sent_ns`], apart from the rest so that it comes last.
    #[inline]
    pub fn patch_sent(&mut self, sent_ns: i64) {
        let at = self.payload_at() + SENT;
        self.bytes[at..at + 8].copy_from_slice(&sent_ns.to_be_bytes());
    }

    fn payload_at(&self) -> usize {
        PACKET + self.format.samples_at()
    }

    /// The frame, without preamble and check sequence.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
