//! Tests with hand-made files of both versions.

use std::{collections::BTreeMap, io::Cursor};

use proptest::prelude::*;

use super::{
    sections::{MAGIC, option},
    *,
};
use crate::{
    event::{Comm, EventKind},
    trace::page::builder::{length_32, long, page},
};

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

const SOFTIRQ: &str = "name: softirq_entry\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n";

fn softirq(delta: u64, vec: u8) -> Vec<u8> {
    long(delta, &[7, 0, 0, 0, 42, 0, 0, 0, vec, 0, 0, 0])
}

fn contents() -> Snapshot {
    Snapshot {
        page_size: 4096,
        header_page: HEADER_PAGE.to_owned(),
        header_event: "# compressed entry header\n".to_owned(),
        ftrace_formats: vec!["name: function\nID: 1\nformat:\n".to_owned()],
        formats: BTreeMap::from([("irq".to_owned(), vec![SOFTIRQ.to_owned()])]),
        kallsyms: "ffffffff81000000 T _stext\nffffffff81000100 T do_work\n".to_owned(),
        printk_formats: "0xabc : \"text\"\n".to_owned(),
        threads: BTreeMap::from([(42, Comm::new("worker"))]),
        clocks: "local global [mono] boot\n".to_owned(),
        uname: "Linux test".to_owned(),
        // CPU 0 was not traced; CPU 2 has less than a page.
        pages: BTreeMap::from([
            (1, [page(100, &[softirq(5, 1), softirq(5, 2)]), page(200, &[softirq(0, 3)])].concat()),
            (2, page(300, &[softirq(7, 4)])[..64].to_vec()),
        ]),
    }
}

fn file_of(contents: &Snapshot) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    contents.write(file.path()).unwrap();
    std::fs::read(file.path()).unwrap()
}

fn open(bytes: &[u8]) -> Result<Dat<Cursor<&[u8]>>, DatError> {
    Dat::read(Cursor::new(bytes), std::path::Path::new("some.dat"))
}

/// CPU, time and number of all softirqs.
fn softirqs(bytes: &[u8]) -> Result<Vec<(u32, u64, u32)>, DatError> {
    let mut dat = open(bytes)?;
    let mut events = Vec::new();
    for cpu in dat.cpus().collect::<Vec<_>>() {
        dat.events(cpu, &mut events)?;
    }
    let vec = |kind| if let EventKind::SoftirqEntry { vec } = kind { vec } else { panic!("{kind:?}") };
    Ok(events.iter().map(|event| (event.cpu, event.at_ns, vec(event.kind))).collect())
}

const ALL: [(u32, u64, u32); 4] = [(1, 105, 1), (1, 110, 2), (1, 200, 3), (2, 307, 4)];

#[test]
fn reads_what_was_written() {
    let bytes = file_of(&contents());
    let dat = open(&bytes).unwrap();
    assert_eq!((dat.clock(), dat.cpus().len()), ("mono", 3));
    assert_eq!(dat.symbol(0xffff_ffff_8100_0120), Some("do_work"));
    assert_eq!(softirqs(&bytes).unwrap(), ALL);
}

/// The same contents as a file of version 7: sections in any order, then the options.
fn version_7(contents: &Snapshot, compression: &str) -> Vec<u8> {
    let six = file_of(contents);
    let formats = |texts: &[&str]| {
        let texts = texts.iter().map(|text| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat());
        [u32::try_from(texts.len()).unwrap().to_le_bytes().to_vec(), texts.collect::<Vec<_>>().concat()].concat()
    };
    let short = |text: &str| [&length_32(text.as_bytes()).to_le_bytes()[..], text.as_bytes()].concat();
    let long = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let header = [b"header_page\0", &long(HEADER_PAGE)[..], b"header_event\0", &long("#")].concat();
    let events = [&1_u32.to_le_bytes()[..], b"irq\0", &formats(&[SOFTIRQ])].concat();
    let mut file = [MAGIC, b"7\0\0\x08\0\x10\0\0", compression.as_bytes(), b"\0\0"].concat();
    let options_at = file.len();
    file.extend([0; 8]);
    let mut options = Vec::new();
    for (number, data) in [
        (option::KALLSYMS, short(&contents.kallsyms)),
        (option::EVENT_FORMATS, events),
        (option::HEADER_INFO, header),
        (option::FTRACE_EVENTS, formats(&[])),
        (option::PRINTK, short(&contents.printk_formats)),
    ] {
        options.extend([&number.to_le_bytes()[..], &8_u32.to_le_bytes(), &(file.len() as u64).to_le_bytes()].concat());
        file.extend([&number.to_le_bytes()[..], &[0; 6], &(data.len() as u64).to_le_bytes(), &data].concat());
    }
    let pages_at = file.len() as u64;
    // In version 6 the pages are at the end of the file.
    let pages = &six[six.len() - 3 * 4096..];
    file.extend(pages);
    let cpu = |cpu: u32, offset: u64, size: u64| {
        [&cpu.to_le_bytes()[..], &(pages_at + offset).to_le_bytes(), &size.to_le_bytes()].concat()
    };
    let table = [cpu(1, 0, 8192), cpu(2, 8192, 64)].concat();
    let buffer = [&[0; 8][..], b"\0mono\0", &4096_u32.to_le_bytes(), &2_u32.to_le_bytes(), &table].concat();
    options.extend([&option::BUFFER.to_le_bytes()[..], &length_32(&buffer).to_le_bytes(), &buffer].concat());
    options.extend([&[0, 0][..], &8_u32.to_le_bytes(), &[0; 8]].concat());
    let at = file.len() as u64;
    file[options_at..options_at + 8].copy_from_slice(&at.to_le_bytes());
    file.extend([&[0; 8][..], &(options.len() as u64).to_le_bytes(), &options].concat());
    file
}

#[test]
fn both_versions_contain_the_same_events() {
    let bytes = version_7(&contents(), "none");
    assert_eq!(softirqs(&bytes).unwrap(), ALL);
    let dat = open(&bytes).unwrap();
    assert_eq!((dat.clock(), dat.symbol(0xffff_ffff_8100_0120)), ("mono", Some("do_work")));
}

#[test]
fn stops_at_circular_options() {
    let mut bytes = version_7(&contents(), "none");
    let own = *bytes[24..].first_chunk::<8>().unwrap();
    let end = bytes.len();
    bytes[end - 8..].copy_from_slice(&own);
    assert_eq!(softirqs(&bytes).unwrap(), ALL);
}

#[test]
fn errors_name_the_remedy() {
    let error = |bytes: &[u8]| open(bytes).unwrap_err().to_string();
    assert!(error(b"something else").contains("some.dat is not a trace of trace-cmd"));
    assert!(error(&version_7(&contents(), "zstd")).contains("trace-cmd convert --compression none -i some.dat"));
    let good = file_of(&contents());
    let with = |at: usize, byte: u8| [&good[..at], &[byte], &good[at + 1..]].concat();
    assert!(error(&with(10, b'8')).contains("of version 8"));
    assert!(error(&with(12, 1)).contains("of a big-endian machine"));
    assert!(error(&with(18, b'X')).contains("damaged in its description of pages"));
    assert!(error(&good[..60]).contains("record it again"));
    let missing = Dat::open(std::path::Path::new("/no/such/file")).unwrap_err().to_string();
    assert!(missing.contains("cannot read the trace /no/such/file"), "{missing}");
    let unwritable = contents().write(std::path::Path::new("/no/such/folder/x.dat"));
    assert!(unwritable.is_err());
}

#[test]
fn rejects_truncated_files() {
    for good in [file_of(&contents()), version_7(&contents(), "none")] {
        // The last CPU has less than a page: cuts after its last record change nothing.
        let end = good.iter().rposition(|&byte| byte != 0).unwrap();
        for length in (0..end).step_by(7) {
            assert!(softirqs(&good[..length]).is_err(), "{length} of {} bytes", good.len());
        }
    }
}

proptest! {
    #[test]
    fn damaged_files_cause_no_panic(
        seven in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = if seven { version_7(&contents(), "none") } else { file_of(&contents()) };
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        // Damaged events may have any kind.
        if let Ok(mut dat) = open(&bytes) {
            let mut events = Vec::new();
            for cpu in dat.cpus().take(8).collect::<Vec<_>>() {
                let _ = dat.events(cpu, &mut events);
            }
        }
    }
}
