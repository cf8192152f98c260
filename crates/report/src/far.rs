//! The far end of a measurement between two machines, in the words that terminal and HTML share.

use record::{Answered, ClockRelation, Far, Record, Setting};

/// What stands above it.
pub fn title(far: &Far) -> String {
    match &far.machine.hostname {
        Some(name) if *name != far.host => format!("Far end {} ({name})", far.host),
        _ => format!("Far end {}", far.host),
    }
}

/// How its clock stands to ours, and what that allows to be told.
pub fn clock(relation: &ClockRelation) -> String {
    match relation.shows_one_way() {
        true => relation.words.clone(),
        false => format!(
            "its own, so no time from one end to the other is told, only round trips and how delays vary: {}",
            relation.words
        ),
    }
}

/// What the kernel granted its threads; empty where it was lost.
pub fn rights(record: &Record, far: &Far) -> String {
    let of_series = record.series.iter().filter(|series| series.host.is_some()).map(|series| &series.granted);
    let granted = of_series.chain(far.answered.iter().map(|answered| &answered.granted)).next();
    granted.map_or_else(String::new, |granted| {
        let locked = if granted.memory_locked { "memory locked" } else { "memory not locked" };
        format!("{} granted on CPUs {}, {locked}", granted.policy, granted.cpus)
    })
}

/// What was set there for the run, and whether it was put back.
pub fn set(far: &Far) -> String {
    let one = |Setting { name, before, during, after }: &Setting| match after {
        Some(after) if after == before => format!("{name} from {before} to {during} and back"),
        Some(after) => format!("{name} from {before} to {during}, not put back: {after}"),
        None => format!("{name} from {before} to {during}, not read back"),
    };
    far.settings.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// What it answered of what was sent, and on which way datagrams were lost where that can be told.
pub fn answered(record: &Record, far: &Far) -> String {
    let Some(Answered { address, answered, strangers, failed, rests, .. }) = &far.answered else {
        return String::new();
    };
    let mut text = format!("{answered} datagrams on {address}");
    let trips = record.series.iter().find_map(|series| Some((series, series.kind.round_trip()?)));
    if let Some((series, trips)) = trips {
        text += &format!(" of {} that were sent", trips.sent);
        // One that came twice would stand in for one that was lost.
        let came_back = series.samples + trips.late;
        if trips.duplicates == 0 && *answered <= trips.sent && came_back <= *answered {
            text +=
                &format!("; lost on the way there {}, on the way back {}", trips.sent - answered, answered - came_back);
        }
    }
    for (count, what) in [
        (*strangers, "datagrams of strangers left unanswered"),
        (*failed, "answers refused by the kernel"),
        (*rests, "times the guard made its thread rest"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use record::{RoundTrip, Series, SeriesKind};

    use super::*;

    fn told(sent: u64, samples: u64, answered: u64, duplicates: u64) -> String {
        let round_trip = RoundTrip { sent, duplicates, ..RoundTrip::default() };
        let series = vec![Series { samples, kind: SeriesKind::RoundTrips(Box::new(round_trip)), ..Series::default() }];
        let counted = Answered { address: "192.0.2.2:7125".to_owned(), answered, strangers: 3, ..Answered::default() };
        let far = Far { answered: Some(counted), ..Far::default() };
        super::answered(&Record { series, ..Record::default() }, &far)
    }

    #[test]
    fn losses_have_a_direction_where_counts_tell_it() {
        let text = told(100, 95, 98, 0);
        assert!(text.starts_with("98 datagrams on 192.0.2.2:7125 of 100 that were sent"), "{text}");
        assert!(text.contains("lost on the way there 2, on the way back 3; 3 datagrams of strangers"), "{text}");
        assert!(!told(100, 95, 98, 1).contains("on the way"));
        assert!(!told(100, 95, 101, 0).contains("on the way"));
        assert_eq!(answered(&Record::default(), &Far::default()), "");
    }

    #[test]
    fn what_was_set_there_is_told_with_what_became_of_it() {
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
            "eth0 eee from on to off and back; eth0 gro from on to off, not put back: off; eth0 tso from on to off, not \
             read back"
        );
    }

    #[test]
    fn a_far_end_is_called_as_its_user_does() {
        let mut far = Far { host: "board-b".to_owned(), ..Far::default() };
        assert_eq!(title(&far), "Far end board-b");
        far.machine.hostname = Some("imx8".to_owned());
        assert_eq!(title(&far), "Far end board-b (imx8)");
    }
}
