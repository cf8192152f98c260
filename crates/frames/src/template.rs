//! A frame that is encoded once and patched in place for each transmission.

use crate::{
    Format, Mac, Payload, Tci,
    avtp::{CIP, HEADER as AVTP_HEADER, presentation},
    ethernet::{AVTP, HEADER, TAG, VLAN},
    payload::{LENGTH, SENT},
};

/// Bits per sample, in both formats.
const SAMPLE_BITS: u8 = 32;
/// Channels of a stereo stream.
pub const STEREO: u8 = 2;
/// Bytes per sample.
const SAMPLE: usize = SAMPLE_BITS as usize / 8;
/// Offset of the AVTP header.
const PACKET: usize = HEADER + TAG;

/// A stream at 48 kHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The source address.
    pub source: Mac,
    /// The destination address.
    pub destination: Mac,
    /// Priority and VLAN.
    pub tci: Tci,
    /// The stream id.
    pub stream_id: u64,
    /// The audio format.
    pub format: Format,
    /// Number of channels, at least 1.
    pub channels: u8,
    /// Samples per channel in each frame, [`min_samples`] to 255. Smaller values are raised to the minimum.
    pub samples: u8,
}

/// An encoded frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    bytes: Box<[u8]>,
    format: Format,
    samples: u8,
}

/// Minimum number of samples per channel that leaves enough space for the payload.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "at most 11")]
pub fn min_samples(channels: u8) -> u8 {
    LENGTH.div_ceil(SAMPLE * usize::from(channels.max(1))) as u8
}

/// Length of a frame without FCS, bytes.
#[must_use]
pub fn length(format: Format, channels: u8, samples: u8) -> usize {
    let samples = usize::from(samples.max(min_samples(channels)));
    PACKET + format.samples_at() + samples * SAMPLE * usize::from(channels.max(1))
}

impl Stream {
    /// Encodes the stream's frame. This allocates; patching does not.
    #[must_use]
    pub fn frame(&self) -> Frame {
        let samples = self.samples.max(min_samples(self.channels));
        let mut bytes = vec![0; length(self.format, self.channels, samples)];
        let (ethernet, packet) = bytes.split_at_mut(PACKET);
        ethernet[..6].copy_from_slice(&self.destination);
        ethernet[6..12].copy_from_slice(&self.source);
        ethernet[12..14].copy_from_slice(&VLAN.to_be_bytes());
        ethernet[14..16].copy_from_slice(&self.tci.to_bits().to_be_bytes());
        ethernet[16..].copy_from_slice(&AVTP.to_be_bytes());
        packet[0] = self.format.subtype();
        // The stream id and the timestamp are valid; version 0.
        packet[1] = 0x81;
        packet[4..12].copy_from_slice(&self.stream_id.to_be_bytes());
        let data_length = u16::try_from(packet.len() - AVTP_HEADER).unwrap_or(u16::MAX);
        packet[20..22].copy_from_slice(&data_length.to_be_bytes());
        match self.format {
            Format::Aaf => encode_aaf(packet, self.channels),
            Format::Iec61883 => encode_iec_61883(packet, self.channels),
        }
        Frame { bytes: bytes.into(), format: self.format, samples }
    }
}

/// AAF header fields: 32-bit integers at 48 kHz.
fn encode_aaf(packet: &mut [u8], channels: u8) {
    const INT_32: u8 = 2;
    const RATE_48_KHZ: u8 = 5;
    packet[16] = INT_32;
    packet[17] = RATE_48_KHZ << 4;
    packet[18] = channels;
    packet[19] = SAMPLE_BITS;
}

/// IEC 61883-6 header fields: AM824 at 48 kHz, with a CIP header before the samples.
fn encode_iec_61883(packet: &mut [u8], channels: u8) {
    // Tag 1: a CIP header follows. Channel 31 and transaction code 0xA are AVTP's values for streams without FireWire.
    packet[22] = 1 << 6 | 31;
    packet[23] = 0xa << 4;
    let source_id_of_native_avtp = 0x3f;
    let second_quadlet_of_audio = 0x80 | 0x10;
    let am824_at_48_khz = 0x02;
    packet[AVTP_HEADER..AVTP_HEADER + CIP].copy_from_slice(&[
        source_id_of_native_avtp,
        // The data block size in quadlets: one sample of each channel.
        channels,
        0,
        0,
        second_quadlet_of_audio,
        am824_at_48_khz,
        // SYT has no time, because AVTP has the presentation time.
        0xff,
        0xff,
    ]);
}

impl Frame {
    /// Offset of the data block counter in the CIP header.
    const DBC: usize = PACKET + AVTP_HEADER + 3;

    /// Sets the sequence number, the presentation time (the slot plus `transit_ns`) and the payload.
    #[inline]
    pub fn patch(&mut self, payload: &Payload, transit_ns: u64) {
        let due_ns = payload.scheduled_ns.wrapping_add(transit_ns.cast_signed());
        let [number, ..] = payload.seq.to_le_bytes();
        self.bytes[PACKET + 2] = number;
        self.bytes[PACKET + 12..PACKET + 16].copy_from_slice(&presentation(due_ns).to_be_bytes());
        if self.format == Format::Iec61883 {
            self.bytes[Self::DBC] = number.wrapping_mul(self.samples);
        }
        let at = self.payload_at();
        self.bytes[at..at + LENGTH].copy_from_slice(&payload.to_bytes());
    }

    /// Sets [`Payload::sent_ns`] separately, because it must be read as late as possible.
    #[inline]
    pub fn patch_sent(&mut self, sent_ns: i64) {
        let at = self.payload_at() + SENT;
        self.bytes[at..at + 8].copy_from_slice(&sent_ns.to_be_bytes());
    }

    /// Sets or clears the bit `tu`: the presentation time is uncertain, because the talker's clock is not synchronised.
    #[inline]
    pub fn patch_uncertain(&mut self, is_uncertain: bool) {
        self.bytes[PACKET + 3] = u8::from(is_uncertain);
    }

    /// Sets the destination address.
    #[inline]
    pub fn patch_destination(&mut self, destination: Mac) {
        self.bytes[..destination.len()].copy_from_slice(&destination);
    }

    fn payload_at(&self) -> usize {
        PACKET + self.format.samples_at()
    }

    /// The frame without preamble and FCS.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
