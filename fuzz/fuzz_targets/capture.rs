//! Reads any bytes as a pcap or pcapng capture, frame by frame, and analyses it.
#![no_main]

use capture::{Filter, Options, Reader, analyse};
use harmless::check_error;
use record::CaptureClock;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(mut reader) = Reader::new(bytes) {
        let mut kept = 0;
        while let Ok(Some(packet)) = reader.next() {
            kept += packet.data.len();
        }
        assert!(kept <= bytes.len(), "the frames are longer than the file");
    }
    let all = Filter::default();
    let udp = Filter { udp: Some(0x1b58), ..Filter::default() };
    for (filter, period_ns) in [(all, None), (udp, Some(125_000))] {
        let options = Options { filter, analysed: None, number: None, period_ns, stream_periods_ns: Vec::new(), idle_slope_bps: None, link_bps: 1_000_000_000, clock: Some(CaptureClock::Utc) };
        let found = match analyse(|| Ok(bytes), "fuzzed", &options) {
            Ok(found) => found,
            Err(error) => {
                check_error(error);
                continue;
            }
        };
        let (capture, series) = (&found.capture, &found.series);
        assert_eq!(series.raw.total(), series.samples);
        // Duplicates and frames without a slot have no lateness, and no frame has one if the slots are not known.
        let known = |count: Option<u64>| count.unwrap_or(0);
        let without_slot = [capture.duplicates, capture.too_late, capture.surplus].map(known).iter().sum::<u64>() + capture.unnumbered;
        let placed = if capture.lateness_unknown.is_some() { 0 } else { capture.frames - without_slot };
        assert_eq!(series.samples, placed);
        assert_eq!(capture.spacing.total() + 1, capture.frames);
    }
});
