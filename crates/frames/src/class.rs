//! Stream reservation (SR) classes.

use crate::{Format, Tci};

/// A stream reservation class of IEEE Std 802.1Q, with its default parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Class {
    /// One frame every 125 us; maximum transit time 2 ms.
    #[default]
    A,
    /// One frame every 250 us; maximum transit time 50 ms.
    B,
}

/// Sample rate of our streams, Hz.
pub const SAMPLE_RATE: u64 = 48_000;

impl Class {
    /// The class measurement interval, ns.
    #[must_use]
    pub fn interval_ns(self) -> u64 {
        match self {
            Self::A => 125_000,
            Self::B => 250_000,
        }
    }

    /// The maximum transit time, ns. Talkers add it to the presentation time.
    #[must_use]
    pub fn max_transit_ns(self) -> u64 {
        match self {
            Self::A => 2_000_000,
            Self::B => 50_000_000,
        }
    }

    /// The default priority and VLAN of its frames.
    #[must_use]
    pub fn tci(self) -> Tci {
        match self {
            Self::A => Tci { pcp: 3, dei: false, vid: 2 },
            Self::B => Tci { pcp: 2, dei: false, vid: 2 },
        }
    }

    /// Samples per channel in one measurement interval at [`SAMPLE_RATE`].
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "6 or 12")]
    pub fn samples(self) -> u8 {
        (self.interval_ns() * SAMPLE_RATE / 1_000_000_000) as u8
    }

    /// The class with this priority and VLAN.
    #[must_use]
    pub fn of(tci: Tci) -> Option<Self> {
        [Self::A, Self::B].into_iter().find(|class| class.tci() == tci)
    }

    /// Length of the frames of a stereo stream, without FCS, bytes.
    #[must_use]
    pub fn frame_bytes(self, format: Format) -> usize {
        crate::template::length(format, crate::template::STEREO, self.samples())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fill_the_interval() {
        assert_eq!((Class::A.samples(), Class::B.samples()), (6, 12));
        assert_eq!(Class::A.frame_bytes(Format::Aaf), 90);
        assert_eq!(Class::A.frame_bytes(Format::Iec61883), 98);
        assert_eq!(Class::B.frame_bytes(Format::Aaf), 138);
    }

    #[test]
    fn finds_the_class_of_a_tag() {
        for class in [Class::A, Class::B] {
            assert_eq!(Class::of(class.tci()), Some(class));
        }
        assert_eq!(Class::of(Tci { pcp: 3, dei: false, vid: 3 }), None);
    }
}
