//! Tests with valid and invalid descriptions.

use proptest::prelude::*;

use super::*;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// From Linux 6.18.
const IRQ: &str = "name: irq_handler_entry\nID: 225\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"irq=%d name=%s\", REC->irq, __get_str(name)\n";

fn here(offset: usize, size: usize, signed: bool) -> Field {
    Field { offset, size, signed, location: Location::Inline }
}

#[test]
fn parses_the_fields_of_an_event() {
    let format = Format::parse(IRQ).unwrap();
    assert_eq!((format.name.as_str(), format.id), ("irq_handler_entry", 225));
    assert_eq!(format.print, "\"irq=%d name=%s\", REC->irq, __get_str(name)");
    assert_eq!(format.field("common_pid"), Some(here(4, 4, true)));
    assert_eq!(format.field("irq"), Some(here(8, 4, true)));
    assert_eq!(format.field("name"), Some(Field { location: Location::DataLoc, ..here(12, 4, false) }));
    assert_eq!(format.field("other"), None);
}

#[test]
fn finds_names_in_every_kind_of_declaration() {
    for (declaration, name) in [
        ("char prev_comm[16]", "prev_comm"),
        ("void * hrtimer", "hrtimer"),
        ("const char *reason", "reason"),
        ("unsigned long args[6]", "args"),
        ("__rel_data_loc char[] name", "name"),
    ] {
        let line = format!("\tfield:{declaration};\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!(field(&line).unwrap().0, name);
    }
}

#[test]
fn rejects_invalid_formats() {
    for text in ["", "name: x\n", "name: x\nID: 99999\n", "ID: 1\n", "nonsense"] {
        assert_eq!(Format::parse(text), None, "{text}");
    }
    for line in ["\tfield:int x;", "\tfield:int x;\toffset:a;\tsize:4;", "\tfield:;\toffset:0;\tsize:4;", "field"] {
        assert_eq!(field(line), None, "{line}");
    }
}

#[test]
fn reads_signed_and_unsigned_numbers() {
    let record = [0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    for (size, signed, number) in [
        (1, true, -1),
        (1, false, 255),
        (2, true, -257),
        (2, false, 0xfeff),
        (4, true, -257),
        (4, false, 0xffff_feff),
        (8, true, 0x7fff_ffff_ffff_feff),
    ] {
        assert_eq!(here(0, size, signed).number(&record), Some(number), "{size} {signed}");
    }
    assert_eq!(here(0, 3, false).number(&record), None, "3 bytes");
    assert_eq!(here(4, 8, false).number(&record), None, "beyond the record");
    assert_eq!(here(usize::MAX, 8, false).number(&record), None);
    assert_eq!(here(2, 4, true).as_u32().unwrap().get(&record), Some(0xffff_ffff));
    assert_eq!(here(6, 4, true).as_u32().unwrap().get(&record), None);
    assert_eq!(
        (here(0, 8, true).as_u32(), Field { location: Location::RelDataLoc, ..here(0, 4, true) }.as_u32()),
        (None, None)
    );
}

#[test]
fn parses_the_page_layout() {
    let layout = PageLayout::parse(HEADER_PAGE).unwrap();
    assert_eq!((layout.time, layout.commit), (here(0, 8, false), here(8, 8, true)));
    assert_eq!((layout.data, layout.size), (16, 4096));
    let large = PageLayout::parse(&HEADER_PAGE.replace("4080", "65520")).unwrap();
    assert_eq!(large.size, 65536);
    let narrow = HEADER_PAGE.replace("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:4");
    assert_eq!(PageLayout::parse(&narrow).unwrap().commit.size, 4);
}

#[test]
fn rejects_invalid_page_layouts() {
    for (from, to) in [
        ("size:4080", "size:0"),
        ("size:4080", "size:99999999999"),
        ("offset:16", "offset:8"),
        ("offset:16", "offset:18446744073709551615"),
        ("timestamp;\toffset:0;\tsize:8", "timestamp;\toffset:0;\tsize:4"),
        ("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:2"),
        ("char data", "char other"),
    ] {
        assert_eq!(PageLayout::parse(&HEADER_PAGE.replace(from, to)), None, "{to}");
    }
}

proptest! {
    #[test]
    fn never_reads_beyond_a_record(
        offset in prop_oneof![0_usize..40, any::<usize>()],
        size in prop_oneof![0_usize..20, any::<usize>()],
        signed in any::<bool>(),
        location in prop::sample::select(vec![Location::Inline, Location::DataLoc, Location::RelDataLoc]),
        record in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let field = Field { offset, size, signed, location };
        let _ = (field.number(&record), field.bytes(&record), field.text(&record), field.as_u32().map(|field| field.get(&record)));
    }

    #[test]
    fn parses_any_text_without_panic(text in "(name: x\nID: 7\n)?[\tfieldo:;sz0-9 \\[\\]*\n]{0,200}") {
        let _ = (Format::parse(&text), PageLayout::parse(&text));
    }
}
