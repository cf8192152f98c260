//! One direction of a device: its mapped ring of frames and the positions of card and program in it.
//!
//! Positions are frames since the stream was prepared. They would wrap only after 2^62 frames.

use std::{io, os::fd::OwnedFd};

use super::{
    Direction, Node, PcmError, StreamConfig,
    abi::{
        Command, DROP, PROTOCOL, STATE_DISCONNECTED, STATE_RUNNING, SYNC_GET_APPL, SYNC_GET_AVAIL_MIN, SwParams,
        SyncPtr, TSTAMP_ENABLE, TSTAMP_MONOTONIC, command, exchange,
    },
    device::open_device,
    params::{Offer, Params},
    sample::Format,
};
use crate::convert;
use crate::region::Region;

/// A configured stream.
#[derive(Debug)]
pub struct Stream {
    pub(super) file: OwnedFd,
    node: Node,
    ring: Region,
    format: Format,
    channels: u32,
    period: u32,
    buffer: u32,
    /// The state last exchanged with the kernel.
    sync: SyncPtr,
}

impl Stream {
    /// Opens and configures a device with at least `channels` channels, if it has as many.
    pub(super) fn open(node: Node, asked: &StreamConfig, channels: u32) -> Result<Self, PcmError> {
        let file = open_device(node)?;
        let (format, channels) = choose(&file, node, asked, channels)?;
        let failed = |step| move |source| PcmError::Failed { node, step, source };
        let sw_params = &mut SwParams {
            tstamp_mode: TSTAMP_ENABLE,
            tstamp_type: TSTAMP_MONOTONIC,
            proto: PROTOCOL,
            period_step: 1,
            avail_min: asked.period_frames.into(),
            // The stream starts only on request, and stops when the whole buffer is overrun or underrun.
            start_threshold: i64::MAX as u64,
            stop_threshold: asked.buffer_frames().into(),
            ..SwParams::default()
        };
        exchange(&file, sw_params).map_err(failed("rejects the software parameters"))?;
        let bytes = asked.buffer_frames() as usize * channels as usize * format.bytes();
        let ring = Region::of(&file, bytes, 0).map_err(failed("cannot map its buffer"))?;
        let sync = SyncPtr::default();
        let (period, buffer) = (asked.period_frames, asked.buffer_frames());
        Ok(Self { file, node, ring, format, channels, period, buffer, sync })
    }

    /// The device.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }

    /// The sample format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Channels per frame.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.channels
    }

    pub(super) fn command(&self, request: Command) -> io::Result<()> {
        command(&self.file, request, 0)
    }

    /// Takes over the kernel's start position. A playback ring is filled with silence.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        self.sync.flags = SYNC_GET_APPL | SYNC_GET_AVAIL_MIN;
        exchange(&self.file, &mut self.sync)?;
        if self.node.direction == Direction::Playback {
            const SILENCE: [u8; 256] = [0; 256];
            for at in (0..self.ring.len()).step_by(SILENCE.len()) {
                let bytes = SILENCE.len().min(self.ring.len() - at);
                let _in_range = self.ring.write(at, &SILENCE[..bytes]);
            }
            self.sync.control.appl_ptr += u64::from(self.buffer);
            self.exchange()?;
        }
        Ok(())
    }

    /// Sends our position to the kernel and gets the card's. This is one system call of less than a microsecond each
    /// time, because ARM boards and USB cards cannot map the positions.
    #[inline]
    pub(super) fn exchange(&mut self) -> io::Result<()> {
        self.sync.flags = SYNC_GET_AVAIL_MIN;
        exchange(&self.file, &mut self.sync)
    }

    #[inline]
    pub(super) fn is_running(&self) -> io::Result<bool> {
        match self.sync.status.state {
            STATE_DISCONNECTED => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            state => Ok(state == STATE_RUNNING),
        }
    }

    /// Frames that can be read, or written, as of the last exchange.
    #[inline]
    #[must_use]
    pub fn available(&self) -> u64 {
        let (hw, appl) = (self.sync.status.hw_ptr, self.sync.control.appl_ptr);
        match self.node.direction {
            Direction::Capture => hw.saturating_sub(appl),
            Direction::Playback => (hw + u64::from(self.buffer)).saturating_sub(appl),
        }
    }

    /// Written frames that have not been played, as of the last exchange.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.sync.control.appl_ptr.saturating_sub(self.sync.status.hw_ptr)
    }

    #[inline]
    pub(super) fn has_period(&self) -> bool {
        self.available() >= self.period.into()
    }

    /// When the kernel last updated the card's position, ns on the monotonic clock.
    #[inline]
    #[must_use]
    pub fn stamp_ns(&self) -> i64 {
        let [seconds, ns] = self.sync.status.tstamp;
        seconds * 1_000_000_000 + ns
    }

    /// The offset in the ring of the sample `frame` frames after our position.
    #[inline]
    fn offset(&self, frame: usize, channel: u32) -> usize {
        let frame = convert::offset((self.sync.control.appl_ptr + frame as u64) % u64::from(self.buffer));
        (frame * self.channels as usize + channel as usize) * self.format.bytes()
    }

    /// Reads the next frames of a channel, counted from 0. A channel that does not exist reads as silence.
    #[inline]
    pub fn read(&self, channel: u32, into: &mut [f32]) {
        let bytes = self.format.bytes();
        for (frame, sample) in into.iter_mut().enumerate() {
            let mut raw = [0; 4];
            let exists = channel < self.channels && self.ring.read(self.offset(frame, channel), &mut raw[..bytes]);
            *sample = if exists { self.format.read(raw) } else { 0.0 };
        }
    }

    /// Writes the next frames of a channel, counted from 0. Ignores a channel that does not exist; channels that are
    /// never written are silent.
    #[inline]
    pub fn write(&mut self, channel: u32, from: &[f32]) {
        if channel >= self.channels {
            return;
        }
        let bytes = self.format.bytes();
        for (frame, &sample) in from.iter().enumerate() {
            let _in_range = self.ring.write(self.offset(frame, channel), &self.format.write(sample)[..bytes]);
        }
    }

    /// Advances our position by one period.
    #[inline]
    pub(super) fn advance(&mut self) -> io::Result<()> {
        self.sync.control.appl_ptr += u64::from(self.period);
        self.exchange()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Errors do not matter: the stream may never have run.
        let _ = self.command(DROP);
    }
}

/// Configures the device with the most precise format and the fewest channels possible.
fn choose(file: &OwnedFd, node: Node, asked: &StreamConfig, channels: u32) -> Result<(Format, u32), PcmError> {
    let offer = Offer::of(file, Some(asked.rate_hz)).map_err(|source| PcmError::Failed {
        node,
        step: "does not report its parameters",
        source,
    })?;
    let Some(refusal) = asked.refused_by(&offer) else {
        let least = channels.clamp(*offer.channels.start(), *offer.channels.end());
        let params = Params::any()
            .mapped()
            .rate(asked.rate_hz)
            .channels(least..=*offer.channels.end())
            .periods(asked.period_frames, asked.periods);
        let possible = params.clone().refined(file).map(|left| left.formats().collect::<Vec<_>>()).unwrap_or_default();
        for format in possible.into_iter().filter(|format| asked.format.is_none_or(|wanted| wanted == *format)) {
            if let Ok(set) = params.clone().format(format).set(file) {
                return Ok((format, set.min_channels()));
            }
        }
        let asked = asked.to_string();
        return Err(PcmError::NotTogether { node, asked, offer });
    };
    Err(PcmError::NotOffered { node, refusal })
}
