//! The last discipline that frames of a priority pass, in common configurations.

use sys::netlink::{Answer, Request};

use super::*;

const ROOT: u32 = u32::MAX;
const ETF: [i32; 3] = [200_000, CLOCK_TAI, 0];
/// mqprio with priority 3 in traffic class 0, 2 in class 1, all others in class 2; queues 1@0 1@1 2@2.
const STREAM_QUEUES: (&[u8; 16], &[u16; 3], &[u16; 3]) =
    (&[2, 2, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2], &[1, 1, 2], &[0, 1, 2]);

/// A queueing discipline of interface 2.
fn qdisc(handle: u32, parent: u32, kind: &str) -> Request {
    let words = [0, 2, handle, parent, 2].map(u32::to_ne_bytes).concat();
    Request::get(36).header(&words).text(1, kind)
}

fn etf(parent: u32, [delta_ns, clock, flags]: [i32; 3]) -> Request {
    let parameters = [delta_ns, clock, flags].map(i32::to_ne_bytes).concat();
    qdisc(0x8001_0000, parent, "etf").nested(2, |options| options.bytes_of(1, &parameters))
}

/// `tc_mqprio_qopt`.
fn queues((map, counts, firsts): (&[u8; 16], &[u16; 3], &[u16; 3])) -> Vec<u8> {
    let words = |values: &[u16; 3]| {
        let mut all = [0_u16; 16];
        all[..3].copy_from_slice(values);
        all.map(u16::to_ne_bytes).concat()
    };
    [&[3][..], map, &[0], &words(counts), &words(firsts)].concat()
}

fn judged(qdiscs: &[Request], priority: u8) -> Result<Launching, String> {
    let answer = Answer::of(qdiscs);
    let all = qdisc::read(&answer.messages().unwrap(), 2).unwrap();
    judge(&all, "eth0", priority).map_err(|error| error.to_string())
}

const IN_SOFTWARE: Launching = Launching { delta_ns: 200_000, is_offloaded: false };

#[test]
fn one_discipline_handles_all_priorities() {
    assert_eq!(judged(&[etf(ROOT, ETF)], 3), Ok(IN_SOFTWARE));
    let offloaded = judged(&[etf(ROOT, [1_000, CLOCK_TAI, 2])], 0);
    assert_eq!(offloaded, Ok(Launching { delta_ns: 1_000, is_offloaded: true }));
}

#[test]
fn remedy_says_where_the_missing_discipline_goes() {
    let error = judged(&[qdisc(0, ROOT, "noqueue")], 3).unwrap_err();
    let remedy = "sudo tc qdisc replace dev eth0 root etf clockid CLOCK_TAI delta 50000";
    assert_eq!(
        error,
        format!(
            "eth0 has no ETF discipline for frames of priority 3, so their launch times would be ignored: {remedy}"
        )
    );
    assert!(judged(&[], 3).unwrap_err().ends_with(remedy));
    // The kernel's default for several queues: disciplines below one without a handle.
    let default = [qdisc(0, ROOT, "mq"), qdisc(0, 1, "fq_codel"), qdisc(0, 2, "fq_codel")];
    assert!(judged(&default, 3).unwrap_err().ends_with(remedy));
}

#[test]
fn priority_selects_the_queue() {
    let mqprio = || qdisc(0x64_0000, ROOT, "mqprio").bytes_of(2, &queues(STREAM_QUEUES));
    let taprio = || qdisc(0x64_0000, ROOT, "taprio").nested(2, |options| options.bytes_of(1, &queues(STREAM_QUEUES)));
    let bands = [&3_i32.to_ne_bytes()[..], &[1, 2, 2, 0, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]].concat();
    let prio = || qdisc(0x64_0000, ROOT, "prio").bytes_of(2, &bands);
    for root in [mqprio(), taprio(), prio()] {
        let all = [root, etf(0x64_0001, ETF), qdisc(0, 0x64_0002, "fq_codel")];
        assert_eq!(judged(&all, 3), Ok(IN_SOFTWARE));
        let other = judged(&all, 2).unwrap_err();
        assert!(other.contains("of priority 2,"), "{other}");
    }
    let second = judged(&[mqprio(), etf(0x64_0001, ETF), qdisc(0x65_0000, 0x64_0002, "cbs")], 2).unwrap_err();
    assert!(second.ends_with("dev eth0 parent 64:2 etf clockid CLOCK_TAI delta 50000"), "{second}");
    // Priority 0 uses two queues, one of which has no ETF.
    let both = [mqprio(), etf(0x64_0003, ETF), etf(0x64_0004, [300_000, CLOCK_TAI, 2])];
    assert_eq!(judged(&both, 0), Ok(Launching { delta_ns: 300_000, is_offloaded: false }));
    assert!(judged(&both[..2], 0).unwrap_err().contains("parent 64:4"));
}

#[test]
fn finds_etf_below_another_shaper() {
    let all = [qdisc(0x1_0000, ROOT, "cbs"), etf(0x1_0001, ETF)];
    assert_eq!(judged(&all, 3), Ok(IN_SOFTWARE));
    // A loop, which no kernel reports, must end, too.
    assert!(judged(&[qdisc(0x1_0000, ROOT, "mq"), qdisc(0x1_0000, 0x1_0001, "mq")], 3).is_err());
}

#[test]
fn rejects_other_clocks_and_deadline_mode() {
    let clock = judged(&[etf(ROOT, [200_000, 1, 0])], 3).unwrap_err();
    assert!(clock.starts_with("the ETF discipline of eth0 uses clock 1,"), "{clock}");
    let deadlines = judged(&[etf(ROOT, [200_000, CLOCK_TAI, 1])], 3).unwrap_err();
    assert!(deadlines.contains("sends frames early: sudo tc qdisc replace dev eth0 root etf"), "{deadlines}");
}
