//! Reads any bytes as a trace file, and as format descriptions with pages: `header_page` NUL formats NUL NUL pages.
#![no_main]

use std::{io::Cursor, path::Path};

use blame::trace::{
    Dat, Decoder, Symbols,
    format::{Format, PageLayout},
    page::Page,
    symbols::strings,
};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Dat::read(Cursor::new(bytes), Path::new("fuzzed.dat")) {
        Ok(mut dat) => {
            let mut events = 0;
            for cpu in dat.cpus().take(4).collect::<Vec<_>>() {
                if let Err(error) = dat.for_each_chunk(cpu, |chunk| events += chunk.len()) {
                    check_error(error);
                }
            }
            assert!(events <= bytes.len(), "more than one event a byte and CPU");
            let _ = dat.symbol(0xffff_ffff_8100_0000);
        }
        Err(error) => check_error(error),
    }
    formats_and_pages(bytes);
});

fn formats_and_pages(bytes: &[u8]) {
    let Some(end) = bytes.windows(2).position(|pair| pair == [0, 0]) else { return };
    let (texts, pages) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 2..]);
    let mut texts = texts.split('\0');
    let Some(layout) = texts.next().and_then(PageLayout::parse) else { return };
    let mut decoder = Decoder::default();
    for text in texts {
        let Some(format) = Format::parse(text) else { continue };
        for system in ["sched", "irq", "irq_vectors", "ipi", "nmi", "timer", "power", "preemptirq", "signal", "ftrace"]
        {
            decoder.add_format(system, &format);
        }
        let _ = (strings(text), Symbols::parse(text).name(1));
    }
    for page in pages.chunks(layout.size).filter_map(|page| Page::parse(page, &layout)) {
        for record in page.records() {
            let event = decoder.decode(0, record.at_ns, record.data);
            assert!(event.is_none_or(|event| event.at_ns == record.at_ns));
        }
    }
}
