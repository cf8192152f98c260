//! The reader returns what was written, and arbitrary input does not make it panic.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::io::Read;

use capture::{CaptureError, Reader, Writer, analyse};
use proptest::prelude::*;
use support::{BIG, LITTLE, OPTIONS, Pcapng, Seen, pcap};

type Packets = Vec<(u32, Option<i64>, Vec<u8>)>;

fn read(from: impl Read) -> Result<Packets, CaptureError> {
    let mut reader = Reader::new(from)?;
    let mut all = Vec::new();
    while let Some(packet) = reader.next()? {
        assert_eq!(packet.number, all.len() as u64 + 1);
        all.push((packet.interface, packet.at_ns, packet.data.to_vec()));
    }
    Ok(all)
}

/// A source that returns few bytes per read.
struct ShortReads<'a>(&'a [u8], usize);

impl Read for ShortReads<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let few = self.1.min(to.len()).min(self.0.len());
        to[..few].copy_from_slice(&self.0[..few]);
        self.0 = &self.0[few..];
        Ok(few)
    }
}

fn frames() -> impl Strategy<Value = Vec<Seen>> {
    let frame = (0..4_000_000_000_000_000_000u64, 0..2u32, prop::collection::vec(any::<u8>(), 0..300));
    prop::collection::vec(frame.prop_map(|(at_ns, interface, bytes)| Seen { at_ns, interface, bytes }), 0..40)
}

proptest! {
    #[test]
    fn pcap_round_trips(frames in frames(), big: bool, nanoseconds: bool, chunk in 1..5000usize) {
        let order = if big { BIG } else { LITTLE };
        let file = pcap(order, nanoseconds, 1, &frames);
        let scale = if nanoseconds { 1 } else { 1000 };
        let expected: Packets =
            frames.iter().map(|seen| (0, Some((seen.at_ns / scale * scale).cast_signed()), seen.bytes.clone())).collect();
        prop_assert_eq!(read(ShortReads(&file, chunk)).unwrap(), expected);
    }

    #[test]
    fn pcapng_round_trips(frames in frames(), big: bool, chunk in 1..5000usize, offset_s in -1000..1000i64) {
        let mut file = Pcapng::new(if big { BIG } else { LITTLE });
        file.interface(1, Some(9), offset_s).interface(1, None, 0);
        let frames: Vec<_> = frames.into_iter().map(|seen| Seen { at_ns: seen.at_ns.max(1_000_000_000_000), ..seen }).collect();
        frames.iter().for_each(|seen| { file.packet(seen); });
        let expected: Packets = frames
            .iter()
            .map(|seen| {
                let scale = if seen.interface == 0 { 1 } else { 1000 };
                (seen.interface, Some((seen.at_ns / scale * scale).cast_signed()), seen.bytes.clone())
            })
            .collect();
        prop_assert_eq!(read(ShortReads(&file.bytes, chunk)).unwrap(), expected);
    }

    #[test]
    fn written_files_round_trip(frames in frames(), dropped: u64, interface in ".{0,20}") {
        let mut file = Vec::new();
        let mut writer = Writer::begin(&mut file, &interface, "at the receiver").unwrap();
        for seen in &frames {
            writer.frame(seen.at_ns, &seen.bytes, seen.bytes.len() + 7).unwrap();
        }
        prop_assert_eq!(writer.frames(), frames.len() as u64);
        writer.end(dropped).unwrap();
        let expected: Packets = frames.iter().map(|seen| (0, Some(seen.at_ns.cast_signed()), seen.bytes.clone())).collect();
        prop_assert_eq!(read(file.as_slice()).unwrap(), expected);
        let mut reader = Reader::new(file.as_slice()).unwrap();
        while let Some(packet) = reader.next().unwrap() {
            prop_assert_eq!(packet.length as usize, packet.data.len() + 7);
        }
        let [found] = reader.interfaces() else { panic!("one interface") };
        prop_assert_eq!((found.name.as_deref(), found.link_type), (Some(&*interface), 1));
        prop_assert_eq!((found.resolution_ns, found.dropped, reader.cut_at()), (1, Some(dropped), None));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), which in 0..6usize) {
        let mut with_interface = Pcapng::new(LITTLE);
        with_interface.interface(1, Some(9), 0);
        let heads: [&[u8]; 6] = [
            &[],
            &pcap(LITTLE, true, 1, &[]),
            &pcap(BIG, false, 1, &[]),
            &Pcapng::new(LITTLE).bytes,
            &Pcapng::new(BIG).bytes,
            &with_interface.bytes,
        ];
        let _ = read([heads[which], &bytes].concat().as_slice());
    }

    #[test]
    fn corrupted_files_do_not_panic(
        wrong in prop::collection::vec((0..1_000_000usize, any::<u8>()), 1..12),
        which in 0..3usize,
    ) {
        let seen = support::Talker::new(1).steady(60);
        let mut file = match which {
            0 => pcap(LITTLE, true, 1, &seen),
            1 => pcap(BIG, false, 1, &seen),
            _ => {
                let mut file = Pcapng::new(LITTLE);
                file.interface(1, Some(9), 0);
                seen.iter().for_each(|seen| { file.packet(seen); });
                file.bytes
            }
        };
        for (at, byte) in wrong {
            let at = at % file.len();
            file[at] = byte;
        }
        if let Ok(found) = analyse(|| Ok(file.as_slice()), "test", &OPTIONS) {
            prop_assert_eq!(found.series.raw.total(), found.series.samples);
            prop_assert!(found.capture.frames >= found.series.samples);
        }
    }
}
