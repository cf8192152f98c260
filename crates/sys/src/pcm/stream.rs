//! One direction of a device: its ring of frames, and how far the card and we have got in it.
//!
//! Positions are frames since the stream was prepared, and would wrap after 2^62 of them, which no machine lives to see.

use std::{io, os::fd::OwnedFd};

use super::{
    Asked, Direction, Node, PcmError,
    abi::{
        DROP, Order, PROTOCOL, STATE_DISCONNECTED, STATE_RUNNING, SYNC_GET_APPL, SYNC_GET_AVAIL_MIN, SwParams, SyncPtr,
        TSTAMP_ENABLE, TSTAMP_MONOTONIC, ask, tell,
    },
    device::open_device,
    params::{Offer, Params},
    sample::Format,
};
use crate::region::Region;

/// A stream that is set.
#[derive(Debug)]
pub struct Stream {
    pub(super) file: OwnedFd,
    node: Node,
    ring: Region,
    format: Format,
    channels: u32,
    period: u32,
    buffer: u32,
    /// What the kernel said last, and what we say next.
    sync: SyncPtr,
}

impl Stream {
    /// Set as asked, with so many channels at least, where it has them.
    pub(super) fn open(node: Node, asked: &Asked, channels: u32) -> Result<Self, PcmError> {
        let file = open_device(node)?;
        let (format, channels) = choose(&file, node, asked, channels)?;
        let failed = |step| move |source| PcmError::Failed { node, step, source };
        let sw_params = &mut SwParams {
            tstamp_mode: TSTAMP_ENABLE,
            tstamp_type: TSTAMP_MONOTONIC,
            proto: PROTOCOL,
            period_step: 1,
            avail_min: asked.period_frames.into(),
            // It starts when it is told to, and stops when the card has run over us.
            start_threshold: i64::MAX as u64,
            stop_threshold: asked.buffer_frames().into(),
            ..SwParams::default()
        };
        ask(&file, sw_params).map_err(failed("does not take how it is to start and stop"))?;
        let bytes = asked.buffer_frames() as usize * channels as usize * format.bytes();
        let ring = Region::of(&file, bytes, 0).map_err(failed("does not map its buffer"))?;
        let sync = SyncPtr::default();
        let (period, buffer) = (asked.period_frames, asked.buffer_frames());
        Ok(Self { file, node, ring, format, channels, period, buffer, sync })
    }

    /// Which device it is.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }

    /// How its samples look on the card.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Channels of a frame.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.channels
    }

    pub(super) fn tell(&self, what: Order) -> io::Result<()> {
        tell(&self.file, what, 0)
    }

    /// Ready to be started, from the position where the kernel begins; a ring to be played from is full of silence.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        self.sync.flags = SYNC_GET_APPL | SYNC_GET_AVAIL_MIN;
        ask(&self.file, &mut self.sync)?;
        if self.node.direction == Direction::Playback {
            const SILENCE: [u8; 256] = [0; 256];
            for at in (0..self.ring.len()).step_by(SILENCE.len()) {
                let bytes = SILENCE.len().min(self.ring.len() - at);
                let _is_inside = self.ring.write(at, &SILENCE[..bytes]);
            }
            self.sync.control.appl_ptr += u64::from(self.buffer);
            self.exchange()?;
        }
        Ok(())
    }

    /// Tells the kernel our position, and asks for the card's. A call each time, because cards of ARM boards and of USB
    /// refuse to show both in mapped memory; it takes a fraction of a microsecond.
    #[inline]
    pub(super) fn exchange(&mut self) -> io::Result<()> {
        self.sync.flags = SYNC_GET_AVAIL_MIN;
        ask(&self.file, &mut self.sync)
    }

    #[inline]
    pub(super) fn is_running(&self) -> io::Result<bool> {
        match self.sync.status.state {
            STATE_DISCONNECTED => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            state => Ok(state == STATE_RUNNING),
        }
    }

    /// Frames that we can take, or have room to play, as of the last exchange.
    #[inline]
    #[must_use]
    pub fn available(&self) -> u64 {
        let (hw, appl) = (self.sync.status.hw_ptr, self.sync.control.appl_ptr);
        match self.node.direction {
            Direction::Capture => hw.saturating_sub(appl),
            Direction::Playback => (hw + u64::from(self.buffer)).saturating_sub(appl),
        }
    }

    /// Frames that we gave and that are not played yet, as of the last exchange.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.sync.control.appl_ptr.saturating_sub(self.sync.status.hw_ptr)
    }

    #[inline]
    pub(super) fn has_period(&self) -> bool {
        self.available() >= self.period.into()
    }

    /// When the kernel last learned the card's position, ns of the monotonic clock.
    #[inline]
    #[must_use]
    pub fn stamp_ns(&self) -> i64 {
        let [seconds, ns] = self.sync.status.tstamp;
        seconds * 1_000_000_000 + ns
    }

    /// Where the sample `frame` frames after our position is.
    #[inline]
    fn place(&self, frame: usize, channel: u32) -> usize {
        let frame = ((self.sync.control.appl_ptr + frame as u64) % u64::from(self.buffer)) as usize;
        (frame * self.channels as usize + channel as usize) * self.format.bytes()
    }

    /// Reads a channel, counted from 0, of the frames that come next. A channel that is not there is silent.
    #[inline]
    pub fn read(&self, channel: u32, into: &mut [f32]) {
        let bytes = self.format.bytes();
        for (frame, sample) in into.iter_mut().enumerate() {
            let mut raw = [0; 4];
            let is_there = channel < self.channels && self.ring.read(self.place(frame, channel), &mut raw[..bytes]);
            *sample = if is_there { self.format.read(raw) } else { 0.0 };
        }
    }

    /// Writes a channel, counted from 0, of the frames that come next. A channel that is not there is left out; those that
    /// are never written stay silent.
    #[inline]
    pub fn write(&mut self, channel: u32, from: &[f32]) {
        if channel >= self.channels {
            return;
        }
        let bytes = self.format.bytes();
        for (frame, &sample) in from.iter().enumerate() {
            let _is_inside = self.ring.write(self.place(frame, channel), &self.format.write(sample)[..bytes]);
        }
    }

    /// Goes on by a period.
    #[inline]
    pub(super) fn advance(&mut self) -> io::Result<()> {
        self.sync.control.appl_ptr += u64::from(self.period);
        self.exchange()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A stream that never ran has nothing to stop.
        let _ = self.tell(DROP);
    }
}

/// The most exact format and the fewest channels that do, set on the device; else what it offers instead.
fn choose(file: &OwnedFd, node: Node, asked: &Asked, channels: u32) -> Result<(Format, u32), PcmError> {
    let offer = Offer::of(file, Some(asked.rate_hz)).map_err(|source| PcmError::Failed {
        node,
        step: "does not say what it can",
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
                return Ok((format, set.least_channels()));
            }
        }
        let asked = asked.to_string();
        return Err(PcmError::NotTogether { node, asked, offer });
    };
    Err(PcmError::NotOffered { node, refusal })
}
