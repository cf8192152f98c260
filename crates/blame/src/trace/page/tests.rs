//! Parses hand-made pages: each type of record, and each kind of damage.

use proptest::prelude::*;

use super::{builder::*, *};

fn records(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let page = Page::parse(page, &LAYOUT).expect("a page");
    page.records().map(|record| (record.at_ns, record.data.to_vec())).collect()
}

fn broken(page: &[u8]) -> bool {
    let mut records = Page::parse(page, &LAYOUT).expect("a page").records();
    records.by_ref().for_each(drop);
    records.is_broken()
}

#[test]
fn adds_up_times() {
    let page = page(1000, &[short(5, b"four"), short(0, b"eight678"), long(7, &[9; 200])]);
    let expected = [(1005, b"four".to_vec()), (1005, b"eight678".to_vec()), (1012, vec![9; 200])];
    assert_eq!(records(&page), expected);
    assert!(!broken(&page));
}

#[test]
fn adds_time_extensions() {
    let pause = (3 << 27) + 17;
    let page = page(1000, &[extend(pause), short(1, b"four")]);
    assert_eq!(records(&page), [(1000 + pause + 1, b"four".to_vec())]);
}

#[test]
fn applies_absolute_time_stamps() {
    let page = page(1000, &[stamp(500_000_000_000), short(2, b"four"), stamp(1000), short(2, b"back")]);
    assert_eq!(records(&page), [(500_000_000_002, b"four".to_vec()), (1002, b"back".to_vec())]);
}

#[test]
fn keeps_the_upper_bits_of_the_previous_time() {
    let upper = 3 << 59;
    assert_eq!(records(&page(upper + 10, &[stamp(20), short(0, b"four")]))[0].0, upper + 20);
    let almost_over = upper + (1 << 59) - 1;
    assert_eq!(records(&page(almost_over, &[stamp(5), short(0, b"four")]))[0].0, (4 << 59) + 5, "they overflowed");
}

#[test]
fn skips_padding_and_adds_its_time() {
    let discarded = [header(PADDING, 30).as_slice(), &8_u32.to_le_bytes(), &[0xff; 4]].concat();
    let page = page(1000, &[discarded, short(4, b"four"), header(PADDING, 0).to_vec(), vec![0xff; 40]]);
    assert_eq!(records(&page), [(1034, b"four".to_vec())]);
    assert!(!broken(&page));
}

#[test]
fn an_empty_page_has_no_records() {
    assert_eq!(records(&page(1000, &[])), []);
    assert_eq!(Page::parse(&page(1000, &[]), &LAYOUT).unwrap().start_ns(), 1000);
}

#[test]
fn reads_losses_from_the_header() {
    let lost = |flags: u64, tail: &[u8]| {
        let mut page = page(1000, &[short(0, b"four")]);
        page[24..24 + tail.len()].copy_from_slice(tail);
        page[8..16].copy_from_slice(&(8 | flags).to_le_bytes());
        Page::parse(&page, &LAYOUT).unwrap().lost()
    };
    assert_eq!(lost(0, &[]), Lost::Nothing);
    assert_eq!(lost(1 << 31, &77_u64.to_le_bytes()), Lost::Some);
    assert_eq!(lost(3 << 30, &77_u64.to_le_bytes()), Lost::Count(77));
}

#[test]
fn ignores_the_loss_count_of_a_full_page() {
    let mut full = page(1000, &[long(0, &[1; 4072])]);
    full[8..16].copy_from_slice(&(4080_u64 | 3 << 30).to_le_bytes());
    let page = Page::parse(&full, &LAYOUT).unwrap();
    assert_eq!((page.lost(), page.records().count()), (Lost::Some, 1));
}

#[test]
fn parses_other_page_sizes_and_32_bit_commits() {
    let layout = PageLayout { size: 65536, ..LAYOUT };
    let mut large = page(1000, &(0..3000).map(|_| short(1, b"12345678")).collect::<Vec<_>>());
    large.resize(65536, 0);
    assert_eq!(Page::parse(&large, &layout).unwrap().records().last().unwrap().at_ns, 4000);
    let mut narrow = LAYOUT;
    (narrow.commit.size, narrow.data) = (4, 12);
    let bytes = [&1000_u64.to_le_bytes()[..], &8_u32.to_le_bytes(), &short(1, b"four"), &[0; 32]].concat();
    assert_eq!(Page::parse(&bytes, &narrow).unwrap().records().count(), 1);
}

#[test]
fn rejects_invalid_headers() {
    assert!(Page::parse(&[], &LAYOUT).is_none());
    assert!(Page::parse(&[0; 15], &LAYOUT).is_none());
    let mut beyond = page(1000, &[]);
    beyond[8..16].copy_from_slice(&4081_u64.to_le_bytes());
    assert!(Page::parse(&beyond, &LAYOUT).is_none());
}

#[test]
fn stops_at_an_invalid_record() {
    let good = short(1, b"four");
    for (what, bad) in [
        ("a record beyond the end", header(28, 1).to_vec()),
        ("a long record beyond the end", [header(0, 1).as_slice(), &400_u32.to_le_bytes()].concat()),
        ("a length smaller than its own field", [header(0, 1).as_slice(), &3_u32.to_le_bytes(), &[0; 8]].concat()),
        ("the longest length", [header(0, 1).as_slice(), &u32::MAX.to_le_bytes(), &[0; 8]].concat()),
        ("no length", header(0, 1).to_vec()),
        ("a truncated time extension", header(TIME_EXTEND, 1).to_vec()),
        ("a truncated timestamp", header(TIME_STAMP, 1).to_vec()),
        ("truncated padding", header(PADDING, 1).to_vec()),
        ("padding beyond the end", [header(PADDING, 1).as_slice(), &400_u32.to_le_bytes()].concat()),
        ("half a header", vec![1, 2]),
    ] {
        let page = page(1000, &[good.clone(), bad]);
        assert_eq!(records(&page), [(1001, b"four".to_vec())], "{what}");
        assert!(broken(&page), "{what}");
    }
}

/// A valid record, the time it adds, and its data if it has any.
fn any_record() -> impl Strategy<Value = (Vec<u8>, u64, Option<Vec<u8>>)> {
    let words = |most: usize| prop::collection::vec(any::<[u8; 4]>(), 1..=most).prop_map(|words| words.concat());
    let delta = 0..1_u64 << 27;
    prop_oneof![
        (delta.clone(), words(28)).prop_map(|(delta, data)| (short(delta, &data), delta, Some(data))),
        (delta, words(60)).prop_map(|(delta, data)| (long(delta, &data), delta, Some(data))),
        (0..1_u64 << 58).prop_map(|pause| (extend(pause), pause, None)),
        (1..1_u64 << 27, words(4)).prop_map(|(delta, data)| {
            let length = (length_32(&data) + 4).to_le_bytes();
            ([header(PADDING, delta).as_slice(), &length, &data].concat(), delta, None)
        }),
    ]
}

proptest! {
    #[test]
    fn reads_back_what_was_written(start in 0..1_u64 << 60, written in prop::collection::vec(any_record(), 0..12)) {
        let mut at_ns = start;
        let mut expected = Vec::new();
        for (_, delta, data) in &written {
            at_ns += delta;
            expected.extend(data.clone().map(|data| (at_ns, data)));
        }
        let page = page(start, &written.iter().map(|(bytes, ..)| bytes.clone()).collect::<Vec<_>>());
        prop_assert_eq!(records(&page), expected);
        prop_assert!(!broken(&page));
    }

    #[test]
    fn parses_any_bytes_without_panic(start in any::<u64>(), bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let page = page(start, &[bytes]);
        let mut before = start;
        let absolute = page[16..].chunks(4).any(|word| u32::from(word[0]) & 31 == TIME_STAMP);
        for record in Page::parse(&page, &LAYOUT).unwrap().records() {
            prop_assert!(absolute || record.at_ns >= before, "time goes backwards");
            before = record.at_ns;
        }
    }
}
