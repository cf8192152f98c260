//! The hardware parameters of a card, refined until one configuration is left.

use std::{collections::BTreeSet, io, ops::RangeInclusive, os::fd::AsFd};

use super::{
    abi::{
        ACCESS, BUFFER_SIZE, CHANNELS, FORMAT, HwParams, INFO_MMAP, INTEGER, Interval, MMAP_INTERLEAVED, OPEN_MAX,
        OPEN_MIN, PERIOD_SIZE, PERIODS, RATE, Refine, exchange,
    },
    sample::Format,
};

/// Sample rates to probe when listing what a card supports, Hz.
const COMMON_RATES: [u32; 13] =
    [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400, 192_000, 384_000];

/// The values that one direction of a device supports. Not every combination is possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The supported sample formats.
    pub formats: Vec<Format>,
    /// Channel counts.
    pub channels: RangeInclusive<u32>,
    /// The supported rates among the common ones and the requested one, Hz.
    pub rates: Vec<u32>,
    /// Frames per period.
    pub period_frames: RangeInclusive<u32>,
    /// Frames per buffer.
    pub buffer_frames: RangeInclusive<u32>,
    /// True if the buffer can be mapped, which is required.
    pub can_map: bool,
}

/// The set of configurations that are still possible.
#[derive(Debug, Clone)]
pub struct Params(HwParams);

impl Params {
    /// All configurations that this program can use.
    pub fn any() -> Self {
        let everything = Interval { min: 0, max: u32::MAX, flags: 0 };
        let mut params = HwParams {
            flags: 0,
            masks: [[u32::MAX; 8]; 8],
            intervals: [everything; 21],
            rmask: u32::MAX,
            cmask: 0,
            info: u32::MAX,
            msbits: 0,
            rate_num: 0,
            rate_den: 0,
            fifo_size: 0,
            reserved: [0; 8],
        };
        params.masks[FORMAT] = bits(&Format::ALL);
        Self(params)
    }

    /// Restricts the access to a mapped ring.
    pub fn mapped(mut self) -> Self {
        self.0.masks[ACCESS] = [0; 8];
        self.0.masks[ACCESS][0] = 1 << MMAP_INTERLEAVED;
        self
    }

    pub fn format(mut self, format: Format) -> Self {
        self.0.masks[FORMAT] = bits(&[format]);
        self
    }

    pub fn channels(self, channels: RangeInclusive<u32>) -> Self {
        self.restrict(CHANNELS, channels)
    }

    pub fn rate(self, hz: u32) -> Self {
        self.restrict(RATE, hz..=hz)
    }

    pub fn periods(self, frames: u32, periods: u32) -> Self {
        let all = frames.saturating_mul(periods);
        self.restrict(PERIOD_SIZE, frames..=frames)
            .restrict(PERIODS, periods..=periods)
            .restrict(BUFFER_SIZE, all..=all)
    }

    fn restrict(mut self, parameter: usize, range: RangeInclusive<u32>) -> Self {
        self.0.intervals[parameter] = Interval { min: *range.start(), max: *range.end(), flags: INTEGER };
        self
    }

    /// The configurations that the device supports; EINVAL if there are none.
    pub fn refined(self, device: impl AsFd) -> io::Result<Self> {
        let mut refine = Refine(self.0);
        exchange(device, &mut refine)?;
        Ok(Self(refine.0))
    }

    /// Configures the device with the first remaining configuration.
    pub fn set(mut self, device: impl AsFd) -> io::Result<Self> {
        self.0.rmask = u32::MAX;
        exchange(device, &mut self.0)?;
        Ok(self)
    }

    fn range(&self, parameter: usize) -> RangeInclusive<u32> {
        let Interval { min, max, flags } = self.0.intervals[parameter];
        min + u32::from(flags & OPEN_MIN != 0)..=max - u32::from(flags & OPEN_MAX != 0 && max > 0)
    }

    /// The smallest remaining channel count.
    pub fn min_channels(&self) -> u32 {
        *self.range(CHANNELS).start()
    }

    /// The remaining formats, the most precise first.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        let mask = self.0.masks[FORMAT];
        Format::ALL
            .into_iter()
            .filter(move |format| mask[format.number() as usize / 32] >> (format.number() % 32) & 1 != 0)
    }
}

impl Offer {
    /// Queries a device that has not been configured. `requested_hz` is probed in addition to the common rates.
    pub fn of(device: impl AsFd, requested_hz: Option<u32>) -> io::Result<Self> {
        let device = device.as_fd();
        let all = Params::any().refined(device)?;
        Ok(Self {
            formats: all.formats().collect(),
            channels: all.range(CHANNELS),
            rates: rates(requested_hz, |hz| Params::any().rate(hz).refined(device).is_ok()),
            period_frames: all.range(PERIOD_SIZE),
            buffer_frames: all.range(BUFFER_SIZE),
            can_map: all.0.info & INFO_MMAP != 0 && Params::any().mapped().refined(device).is_ok(),
        })
    }
}

/// The rates that a device supports among the common ones and the requested one.
fn rates(requested_hz: Option<u32>, has: impl Fn(u32) -> bool) -> Vec<u32> {
    let rates: BTreeSet<u32> = COMMON_RATES.into_iter().chain(requested_hz).filter(|&hz| has(hz)).collect();
    rates.into_iter().collect()
}

fn bits(formats: &[Format]) -> [u32; 8] {
    let mut mask = [0; 8];
    for format in formats {
        mask[format.number() as usize / 32] |= 1 << (format.number() % 32);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_intervals_round_trip() {
        let params = Params::any().format(Format::S24In3).channels(2..=8).rate(48_000).periods(64, 3);
        assert_eq!(params.formats().collect::<Vec<_>>(), [Format::S24In3]);
        assert_eq!((params.range(CHANNELS), params.min_channels()), (2..=8, 2));
        assert_eq!((params.range(RATE), params.range(BUFFER_SIZE)), (48_000..=48_000, 192..=192));
        assert_eq!(Params::any().formats().collect::<Vec<_>>(), Format::ALL);
    }

    #[test]
    fn probes_the_requested_rate_and_the_common_ones() {
        let any = |hz| (8_000..=48_000).contains(&hz);
        let common = [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000];
        assert_eq!(rates(None, any), common);
        assert_eq!(rates(Some(44_100), any), common);
        assert_eq!(rates(Some(96_000), any), common, "96 kHz is not supported");
        assert_eq!(rates(Some(24_000), any)[3..5], [22_050, 24_000]);
        assert_eq!(rates(Some(12_000), |hz| hz == 12_000), [12_000]);
    }

    #[test]
    fn open_intervals_exclude_their_ends() {
        let mut params = Params::any();
        params.0.intervals[PERIODS] = Interval { min: 1, max: 8, flags: OPEN_MIN | OPEN_MAX };
        assert_eq!(params.range(PERIODS), 2..=7);
    }
}
