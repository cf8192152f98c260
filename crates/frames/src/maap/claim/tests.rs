use proptest::prelude::*;

use super::*;

/// The last octets of the addresses decide: `LOW` wins against `OWN`, and `OWN` wins against `HIGH`.
const OWN: Mac = [9, 9, 9, 9, 9, 5];
const LOW: Mac = [10, 10, 10, 10, 10, 4];
const HIGH: Mac = [1, 1, 1, 1, 1, 6];
const RANGE: Addresses = Addresses { first: 0x91e0_f000_1234, count: 8 };

fn claim(seed: u64) -> Claim {
    Claim::new(OWN, RANGE, false, Vec::new(), seed, 0)
}

fn fixed() -> Claim {
    Claim { is_fixed: true, ..claim(1) }
}

/// Sends all messages that are due until the addresses are claimed, and returns them with their times.
fn run_until_claimed(claim: &mut Claim) -> Vec<(i64, Message)> {
    let mut sent = Vec::new();
    while !claim.is_claimed() {
        let due_ns = claim.due_ns().expect("a message is due");
        sent.push((due_ns, claim.send(due_ns).expect("the message that is due")));
    }
    sent
}

fn claimed() -> Claim {
    let mut claim = claim(1);
    run_until_claimed(&mut claim);
    claim
}

fn message(kind: Kind, requested: Addresses) -> Message {
    let conflict = (kind == Kind::Defend).then_some(requested);
    Message { kind, requested, conflict }
}

fn resolution(claim: &mut Claim, source: Mac, message: &Message) -> Option<Resolution> {
    claim.receive(7, source, message).map(|conflict| conflict.resolution)
}

#[test]
fn the_lower_address_from_the_last_octet_on_wins() {
    assert!(is_lower(OWN, HIGH) && !is_lower(OWN, LOW) && !is_lower(OWN, OWN));
    assert!(is_lower([9, 0, 0, 0, 0, 5], [1, 0, 0, 0, 1, 5]), "the octet before the last decides");
    assert!(is_lower([1, 0, 0, 0, 0, 5], [2, 0, 0, 0, 0, 5]), "the first octet decides last");
}

#[test]
fn a_defence_and_an_announcement_end_a_claim() {
    for (kind, source) in [(Kind::Defend, HIGH), (Kind::Announce, HIGH), (Kind::Probe, LOW)] {
        let mut claim = claim(1);
        let first = claim.send(0).expect("a PROBE");
        assert_eq!(first, message(Kind::Probe, RANGE));
        assert_eq!(resolution(&mut claim, source, &message(kind, RANGE)), Some(Resolution::Left), "{kind:?}");
        let moved = claim.addresses();
        assert!(moved.are_dynamic() && moved.count == RANGE.count && moved.common(RANGE).is_none(), "{moved:?}");
        assert_eq!(claim.due_ns(), Some(7));
        let sent = run_until_claimed(&mut claim);
        assert_eq!(sent.len(), 4, "three PROBE messages, and one ANNOUNCE");
        assert!(sent.iter().all(|(_, message)| message.requested == moved));
    }
}

#[test]
fn a_probe_of_a_higher_address_is_ignored_before_the_claim() {
    let mut claim = claim(1);
    claim.send(0);
    let due_ns = claim.due_ns();
    assert_eq!(resolution(&mut claim, HIGH, &message(Kind::Probe, RANGE)), Some(Resolution::Kept));
    assert_eq!((claim.addresses(), claim.due_ns()), (RANGE, due_ns));
}

#[test]
fn a_claimed_range_is_defended_where_it_is_probed() {
    let mut claim = claimed();
    let probed = Addresses { first: RANGE.first + 6, count: 100 };
    for source in [LOW, HIGH] {
        let defend = Message {
            kind: Kind::Defend,
            requested: probed,
            conflict: Some(Addresses { first: RANGE.first + 6, count: 2 }),
        };
        let answer = resolution(&mut claim, source, &message(Kind::Probe, probed));
        assert_eq!(answer, Some(Resolution::Defended(defend)));
    }
    assert!(claim.is_claimed() && claim.addresses() == RANGE);
}

#[test]
fn a_claimed_range_is_yielded_to_a_lower_address_only() {
    for kind in [Kind::Announce, Kind::Defend] {
        let mut claim = claimed();
        assert_eq!(resolution(&mut claim, HIGH, &message(kind, RANGE)), Some(Resolution::Kept));
        assert!(claim.is_claimed());
        assert_eq!(resolution(&mut claim, LOW, &message(kind, RANGE)), Some(Resolution::Yielded));
        assert!(!claim.is_claimed() && claim.addresses().common(RANGE).is_none());
        run_until_claimed(&mut claim);
    }
}

#[test]
fn fixed_addresses_are_given_up_and_never_changed() {
    let mut probing = fixed();
    probing.send(0);
    assert_eq!(resolution(&mut probing, HIGH, &message(Kind::Defend, RANGE)), Some(Resolution::Left));
    let mut claimed = fixed();
    run_until_claimed(&mut claimed);
    assert_eq!(resolution(&mut claimed, LOW, &message(Kind::Announce, RANGE)), Some(Resolution::Yielded));
    for mut claim in [probing, claimed] {
        assert_eq!((claim.addresses(), claim.due_ns(), claim.send(i64::MAX)), (RANGE, None, None));
        assert_eq!(resolution(&mut claim, HIGH, &message(Kind::Probe, RANGE)), None, "nothing is left to defend");
    }
}

#[test]
fn a_claimed_range_is_probed_again_and_used_until_a_conflict() {
    let returned_ns = 50_000_000_000;
    let mut claim = claimed();
    claim.probe_again(returned_ns);
    assert_eq!((claim.is_claimed(), claim.due_ns()), (false, Some(returned_ns)));
    let kinds: Vec<_> = run_until_claimed(&mut claim).iter().map(|(_, sent)| (sent.kind, sent.requested)).collect();
    assert_eq!(kinds, [Kind::Probe, Kind::Probe, Kind::Probe, Kind::Announce].map(|kind| (kind, RANGE)));
    for (kind, source) in [(Kind::Defend, HIGH), (Kind::Announce, HIGH), (Kind::Probe, LOW)] {
        let mut claim = claimed();
        claim.probe_again(returned_ns);
        assert_eq!(resolution(&mut claim, HIGH, &message(Kind::Probe, RANGE)), Some(Resolution::Kept));
        assert_eq!(resolution(&mut claim, source, &message(kind, RANGE)), Some(Resolution::Yielded), "{kind:?}");
        assert_eq!(claim.addresses().common(RANGE), None);
        let moved = claim.addresses();
        assert_eq!(resolution(&mut claim, source, &message(kind, moved)), Some(Resolution::Left), "not used yet");
    }
}

#[test]
fn fixed_addresses_that_were_given_up_are_not_probed_again() {
    let mut claim = fixed();
    run_until_claimed(&mut claim);
    claim.probe_again(1);
    assert_eq!(resolution(&mut claim, HIGH, &message(Kind::Defend, RANGE)), Some(Resolution::Yielded));
    claim.probe_again(2);
    assert_eq!((claim.due_ns(), claim.send(i64::MAX)), (None, None));
}

#[test]
fn messages_about_other_addresses_and_our_own_are_no_conflict() {
    let mut claim = claimed();
    let others = Addresses { first: RANGE.first + 8, count: 8 };
    assert_eq!(resolution(&mut claim, LOW, &message(Kind::Announce, others)), None);
    assert_eq!(resolution(&mut claim, OWN, &message(Kind::Announce, RANGE)), None);
    assert_eq!(resolution(&mut claim, LOW, &message(Kind::Announce, Addresses { count: 0, ..RANGE })), None);
}

#[test]
fn a_defence_counts_for_the_addresses_that_its_sender_uses() {
    let mut claim = claim(1);
    claim.send(0);
    let of_another = Message {
        kind: Kind::Defend,
        requested: Addresses { first: RANGE.first - 2, count: 8 },
        conflict: Some(Addresses { first: RANGE.first - 2, count: 2 }),
    };
    assert_eq!(resolution(&mut claim, HIGH, &of_another), None, "a third speaker answers the second one");
    let answer = Message { conflict: None, ..message(Kind::Defend, RANGE) };
    assert_eq!(resolution(&mut claim, HIGH, &answer), Some(Resolution::Left), "without conflict addresses");
}

#[test]
fn a_device_that_contests_every_address_causes_no_storm() {
    let mut claim = claim(1);
    let (mut now_ns, mut probes) = (0, 0);
    while now_ns < 20_000_000_000 {
        let probe = claim.send(now_ns).expect("a PROBE");
        probes += 1;
        claim.receive(now_ns, HIGH, &message(Kind::Defend, probe.requested)).expect("a conflict");
        now_ns = claim.due_ns().expect("the next PROBE");
    }
    assert!((10 + 20_000 / 600..=11 + 20_000 / 500).contains(&probes), "{probes} in 20 s");
}

#[test]
fn further_ranges_of_the_speaker_are_not_chosen() {
    let ours = vec![Addresses { first: RANGE.first + 7, count: 1 }];
    let claim = Claim::new(OWN, RANGE, false, ours.clone(), 1, 0);
    assert!(claim.addresses().are_dynamic() && claim.addresses().common(ours[0]).is_none());
    assert_eq!(Claim::new(OWN, RANGE, true, ours, 1, 0).addresses(), RANGE, "fixed");
}

#[test]
fn a_free_range_is_found_in_a_nearly_full_pool() {
    let mut claim = claim(3);
    let whole = message(Kind::Announce, POOL);
    assert_eq!(resolution(&mut claim, HIGH, &whole), Some(Resolution::Left));
    assert!(claim.addresses().are_dynamic(), "all addresses are taken, so any of them is tried");
    let largest = Addresses { first: POOL.first, count: POOL.count };
    let mut claim = Claim::new(OWN, largest, false, Vec::new(), 3, 0);
    assert_eq!(resolution(&mut claim, HIGH, &whole), Some(Resolution::Left));
    assert_eq!(claim.addresses(), POOL);
}

proptest! {
    #[test]
    fn a_claim_takes_three_probes_in_the_standard_time(seed in any::<u64>()) {
        let mut claim = claim(seed);
        let sent = run_until_claimed(&mut claim);
        let kinds: Vec<_> = sent.iter().map(|(_, message)| message.kind).collect();
        prop_assert_eq!(kinds, [Kind::Probe, Kind::Probe, Kind::Probe, Kind::Announce]);
        for pair in sent.windows(2) {
            prop_assert!((500_000_000..=600_000_000).contains(&(pair[1].0 - pair[0].0)));
        }
        let mut last_ns = sent[3].0;
        for _ in 0..3 {
            let due_ns = claim.due_ns().unwrap();
            prop_assert!((30_000_000_000..=32_000_000_000).contains(&(due_ns - last_ns)));
            prop_assert_eq!(claim.send(due_ns - 1), None);
            prop_assert_eq!(claim.send(due_ns), Some(message(Kind::Announce, RANGE)));
            last_ns = due_ns;
        }
    }

    /// Speakers on one network, whose messages all arrive: two never end with a common address, and no range is that of a
    /// fixed one.
    #[test]
    fn speakers_end_with_different_addresses(
        seeds in prop::collection::vec(any::<u64>(), 2..8),
        counts in prop::collection::vec(1..600u16, 8),
        starts in prop::collection::vec(0..5i64, 8),
    ) {
        let fixed = Addresses { first: POOL.first + 0x2000, count: 1 };
        let mut speakers: Vec<(Mac, Claim)> = seeds.iter().zip(0..).map(|(&seed, octet)| {
            let (own, n) = ([2, 0, 0, 0, 0, octet], usize::from(octet));
            let wanted = Addresses { first: RANGE.first, count: counts[n] };
            (own, Claim::new(own, wanted, false, vec![fixed], seed, starts[n] * 400_000_000))
        }).collect();
        for _ in 0..10_000 {
            let next = (0..speakers.len()).min_by_key(|&n| speakers[n].1.due_ns().unwrap()).unwrap();
            let now_ns = speakers[next].1.due_ns().unwrap();
            if now_ns > 200_000_000_000 {
                break;
            }
            let (source, sent) = (speakers[next].0, speakers[next].1.send(now_ns).unwrap());
            for n in (0..speakers.len()).filter(|&n| n != next) {
                let conflict = speakers[n].1.receive(now_ns, source, &sent);
                if let Some(Conflict { resolution: Resolution::Defended(answer), .. }) = conflict {
                    let own = speakers[n].0;
                    speakers[next].1.receive(now_ns, own, &answer);
                }
            }
        }
        for (n, (_, one)) in speakers.iter().enumerate() {
            prop_assert!(one.is_claimed() && one.addresses().are_dynamic());
            prop_assert!(one.addresses() == RANGE || one.addresses().common(fixed).is_none());
            for (_, other) in &speakers[n + 1..] {
                prop_assert_eq!(one.addresses().common(other.addresses()), None);
            }
        }
    }
}
