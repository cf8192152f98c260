//! The destination addresses of a talker that are claimed with MAAP.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use frames::{Mac, ethernet, maap::Addresses};
use probes::stream::maap::{ClaimError, Speaker, WantedAddresses};
use sys::signal;

use super::{
    StreamProbe,
    endpoints::Endpoints,
    error::{StreamError, socket},
};

/// The destination addresses that punctual chooses, for streams without a given one.
#[derive(Debug)]
pub(super) struct Destinations {
    /// The unique ids of these streams, in the order of their addresses.
    unique_ids: Vec<u16>,
    /// The first address, as a number; it changes if other addresses are claimed. `None` without MAAP.
    pub first: Option<Arc<AtomicU64>>,
}

impl Destinations {
    /// The place of a stream's address after the first one; `None` if its address was given.
    pub fn place(&self, unique_id: u16) -> Option<u16> {
        let place = self.unique_ids.iter().position(|id| *id == unique_id)?;
        u16::try_from(place).ok()
    }

    /// The chosen address of a stream of `source`.
    pub fn of(&self, source: Mac, unique_id: u16) -> Mac {
        let first = self.first.as_ref().map(|first| Addresses { first: first.load(Relaxed), count: 1 });
        let claimed = first.zip(self.place(unique_id)).map(|(first, place)| first.at(place));
        claimed.unwrap_or_else(|| ethernet::multicast_of(source, unique_id))
    }
}

impl StreamProbe {
    /// True if MAAP has an address to claim.
    pub(super) fn has_address_to_claim(&self) -> bool {
        !self.wanted([0; 6]).is_empty()
    }

    /// The ranges of addresses to claim for a talker with the address `source`: that of the streams without a given
    /// destination first, if there are any, then the given addresses that MAAP allocates.
    fn wanted(&self, source: Mac) -> Vec<WantedAddresses> {
        let unique_ids = self.without_destination();
        let count = u16::try_from(unique_ids.len()).unwrap_or(u16::MAX);
        let first = unique_ids.first().map(|&unique_id| Addresses::preferred(source, unique_id, count));
        let chosen = first.map(|addresses| WantedAddresses { addresses, is_fixed: false });
        let given = self.given_destinations().into_iter().map(|address| Addresses::of(address, 1));
        let fixed = given.filter(|address| address.are_dynamic());
        let fixed = fixed.map(|addresses| WantedAddresses { addresses, is_fixed: true });
        chosen.into_iter().chain(fixed).collect()
    }

    /// Claims the destination addresses, if MAAP was requested. `seed` is the source of random choices.
    pub(super) fn claim(
        &self,
        endpoints: &Endpoints,
        seed: u32,
    ) -> Result<(Destinations, Option<Speaker>), StreamError> {
        let unique_ids = self.without_destination();
        if !self.maap || !self.talks() {
            return Ok((Destinations { unique_ids, first: None }, None));
        }
        let (receiver, sender, link) = endpoints.maap()?;
        let wanted = self.wanted(endpoints.mac());
        let is_interrupted = || signal::termination_requests() > 0;
        let claim = Speaker::claim(receiver, sender, link, endpoints.mac(), &wanted, seed.into(), is_interrupted);
        let speaker = claim.map_err(|error| match error {
            ClaimError::Io(error) => socket(endpoints.near_interface(), error),
            error => StreamError::Maap(error),
        })?;
        let first = speaker.first_addresses().into_iter().next().filter(|_| !unique_ids.is_empty());
        Ok((Destinations { unique_ids, first }, Some(speaker)))
    }
}

#[cfg(test)]
mod tests {
    use frames::{Class, Format};

    use super::{super::ListedStream, *};

    fn listed(destination: Option<Mac>) -> ListedStream {
        ListedStream {
            name: "a".to_owned(),
            class: Class::A,
            period_ns: 125_000,
            tci: Class::A.tci(),
            destination,
            format: Format::Aaf,
            channels: 2,
            samples: 6,
        }
    }

    #[test]
    fn streams_share_one_range_and_given_addresses_of_the_pool_are_fixed() {
        let (in_pool, elsewhere) = ([0x91, 0xe0, 0xf0, 0, 0x20, 1], [0x91, 0xe0, 0xf0, 0, 0xfe, 1]);
        let probe = StreamProbe {
            listed: [None, Some(in_pool), Some(elsewhere), None, Some(in_pool)].map(listed).to_vec(),
            unique_id: 7,
            ..StreamProbe::default()
        };
        let source = [2, 0, 0, 0, 0x12, 0x34];
        let [range, fixed] = probe.wanted(source)[..] else { panic!("two ranges") };
        assert_eq!((range.addresses, range.is_fixed), (Addresses::of([0x91, 0xe0, 0xf0, 0, 0x12, 0x3b], 2), false));
        assert_eq!((fixed.addresses, fixed.is_fixed), (Addresses::of(in_pool, 1), true));
        let claimed = Addresses::of([0x91, 0xe0, 0xf0, 0, 1, 0xff], 2);
        let first = Some(Arc::new(AtomicU64::new(claimed.first)));
        let destinations = Destinations { unique_ids: probe.without_destination(), first };
        assert_eq!([7, 8, 10].map(|id| destinations.place(id)), [Some(0), None, Some(1)]);
        assert_eq!(destinations.of(source, 10), [0x91, 0xe0, 0xf0, 0, 2, 0], "the address after the first one");
        let without_maap = Destinations { first: None, ..destinations };
        assert_eq!(without_maap.of(source, 10), ethernet::multicast_of(source, 10));
    }

    #[test]
    fn a_given_address_outside_of_the_pool_leaves_nothing_to_claim() {
        let of = |listed| StreamProbe { listed, ..StreamProbe::default() }.has_address_to_claim();
        assert!(of(Vec::new()) && of(vec![listed(None)]));
        assert!(!of(vec![listed(Some([1, 0, 0x5e, 0, 0, 1]))]));
    }
}
