//! The far end of a measurement between two machines, as text for terminal and HTML.

use record::{Answered, ClockRelation, Far, Record, Setting, grouped};

use crate::words::cpus;

/// The heading of the far end's section.
pub fn title(far: &Far) -> String {
    match &far.machine.hostname {
        Some(name) if *name != far.host => format!("Far end {} ({name})", far.host),
        _ => format!("Far end {}", far.host),
    }
}

/// The relation of the far end's clock to ours, and its consequence for reported times.
pub fn clock(relation: &ClockRelation) -> String {
    match relation.shows_one_way() {
        true => relation.words.clone(),
        false => format!(
            "a separate clock, so one-way times are not reported, only round trips and delay variation: {}",
            relation.words
        ),
    }
}

/// The rights that the kernel granted the far end's threads; empty if its part of the record was lost.
pub fn rights(record: &Record, far: &Far) -> String {
    let of_series = record.series.iter().filter(|series| series.host.is_some()).map(|series| &series.granted);
    let granted = of_series.chain(far.answered.iter().map(|answered| &answered.granted)).next();
    granted.map_or_else(String::new, |granted| {
        let locked = if granted.memory_locked { "memory locked" } else { "memory not locked" };
        format!("{} granted on {}, {locked}", granted.policy, cpus(&granted.cpus))
    })
}

/// The settings changed on the far end for the run, and the values after it.
pub fn set(far: &Far) -> String {
    let one = |Setting { name, before, during, after }: &Setting| match after {
        Some(after) if after == before => format!("{name} from {before} to {during} and back"),
        Some(after) => format!("{name} from {before} to {during}, not restored: {after}"),
        None => format!("{name} from {before} to {during}, not read back"),
    };
    far.settings.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Datagrams that the far end answered. The losses of each direction follow if the counts allow to separate them.
pub fn answered(record: &Record, far: &Far) -> String {
    let Some(Answered { address, transport, answered, strangers, failed, rests, .. }) = &far.answered else {
        return String::new();
    };
    let by = transport.as_ref().map_or_else(String::new, |transport| format!(" by {transport}"));
    let mut text = format!("{} datagrams on {address}{by}", grouped(*answered));
    let trips = record.series.iter().find_map(|series| Some((series, series.kind.round_trip()?)));
    if let Some((series, trips)) = trips {
        text += &format!(", of {} sent", grouped(trips.sent));
        // A duplicate could hide a loss.
        let came_back = series.samples + trips.late;
        if trips.duplicates == 0 && *answered <= trips.sent && came_back <= *answered {
            let [out, back] = [trips.sent - answered, answered - came_back].map(grouped);
            text += &format!("; lost on the way out {out}, on the way back {back}");
        }
    }
    for (count, what) in [
        (*strangers, "datagrams from other senders ignored"),
        (*failed, "replies that the kernel refused to send"),
        (*rests, "times the guard throttled its thread"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", grouped(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use record::{RoundTrip, Series, SeriesKind};

    use super::*;

    fn describe(sent: u64, samples: u64, answered: u64, duplicates: u64) -> String {
        let round_trip = RoundTrip { sent, duplicates, ..RoundTrip::default() };
        let series = vec![Series { samples, kind: SeriesKind::RoundTrips(Box::new(round_trip)), ..Series::default() }];
        let counted = Answered { address: "192.0.2.2:7125".to_owned(), answered, strangers: 3, ..Answered::default() };
        let far = Far { answered: Some(counted), ..Far::default() };
        super::answered(&Record { series, ..Record::default() }, &far)
    }

    #[test]
    fn splits_losses_by_direction_if_counts_allow() {
        let text = describe(100, 95, 98, 0);
        assert!(text.starts_with("98 datagrams on 192.0.2.2:7125, of 100 sent"), "{text}");
        assert!(text.contains("lost on the way out 2, on the way back 3; 3 datagrams from other senders"), "{text}");
        assert!(!describe(100, 95, 98, 1).contains("on the way"));
        assert!(!describe(100, 95, 101, 0).contains("on the way"));
        assert_eq!(answered(&Record::default(), &Far::default()), "");
    }

    #[test]
    fn lists_settings_with_their_values_after_the_run() {
        let setting = |name: &str, after: Option<&str>| Setting {
            name: name.to_owned(),
            before: "on".to_owned(),
            during: "off".to_owned(),
            after: after.map(str::to_owned),
        };
        let settings =
            vec![setting("eth0 eee", Some("on")), setting("eth0 gro", Some("off")), setting("eth0 tso", None)];
        assert_eq!(
            set(&Far { settings, ..Far::default() }),
            "eth0 eee from on to off and back; eth0 gro from on to off, not restored: off; eth0 tso from on to off, \
             not read back"
        );
    }

    #[test]
    fn titles_the_far_end_as_the_user_named_it() {
        let mut far = Far { host: "board-b".to_owned(), ..Far::default() };
        assert_eq!(title(&far), "Far end board-b");
        far.machine.hostname = Some("imx8".to_owned());
        assert_eq!(title(&far), "Far end board-b (imx8)");
    }
}
