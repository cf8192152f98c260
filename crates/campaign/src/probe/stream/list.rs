//! The streams of a talker, and their threads: streams of the same class, period and priority share one.

use std::collections::BTreeSet;

use frames::{Class, Format, Mac, Tci, template};
use probes::stream::listener::NamedStream;

use super::{super::definition::Definition, SENDING_NS, StreamProbe};

/// A stream from a file of streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedStream {
    /// Its name in the record, unique in the file.
    pub name: String,
    /// Class, which sets the transit time.
    pub class: Class,
    /// Time between two frames, ns.
    pub period_ns: u64,
    /// Priority and VLAN.
    pub tci: Tci,
    /// Destination address; `None` for one in the dynamic MAAP pool, from source address and unique id.
    pub destination: Option<Mac>,
    /// Format of the samples.
    pub format: Format,
    /// Number of channels, at least 1.
    pub channels: u8,
    /// Samples per channel in each frame.
    pub samples: u8,
}

/// The streams that one thread sends: a frame of each in every slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Name of the thread in the record.
    pub role: String,
    pub class: Class,
    pub period_ns: u64,
    /// Priority of the frames, 0 to 7.
    pub pcp: u8,
    /// The streams, with their unique ids.
    pub streams: Vec<(u16, ListedStream)>,
}

impl Group {
    /// Names of the streams; empty for streams that have none.
    pub fn names(&self) -> Vec<String> {
        self.streams.iter().map(|(_, stream)| stream.name.clone()).filter(|name| !name.is_empty()).collect()
    }

    /// Time that the kernel may take for the frames of a slot after the first, ns.
    pub fn sending_ns(&self) -> u64 {
        (self.streams.len() as u64).saturating_sub(1) * SENDING_NS
    }

    /// The streams as frames of an interface with the address `source`. `chosen` returns the destination of a stream without
    /// a given one, by its unique id.
    pub fn frames(&self, source: Mac, chosen: impl Fn(u16) -> Mac) -> Vec<frames::Stream> {
        let frame = |&(unique_id, ref stream): &(u16, ListedStream)| frames::Stream {
            source,
            destination: stream.destination.unwrap_or_else(|| chosen(unique_id)),
            tci: stream.tci,
            stream_id: frames::stream_id(source, unique_id),
            format: stream.format,
            channels: stream.channels,
            samples: stream.samples,
        };
        self.streams.iter().map(frame).collect()
    }
}

impl StreamProbe {
    /// The streams of the talker, at least one: those of the file, or equal ones with a frame every `period_ns`.
    fn streams(&self, period_ns: u64) -> Vec<ListedStream> {
        if !self.listed.is_empty() {
            return self.listed.clone();
        }
        let stream = ListedStream {
            name: String::new(),
            class: self.class,
            period_ns,
            tci: self.class.tci(),
            destination: None,
            format: self.format,
            channels: template::STEREO,
            samples: self.class.samples(),
        };
        vec![stream; 1 + usize::from(self.further_streams)]
    }

    /// The streams of each thread of the talker, the shortest period first.
    pub(crate) fn groups(&self, period_ns: u64) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (unique_id, stream) in (self.unique_id..=u16::MAX).zip(self.streams(period_ns)) {
            let of = |group: &Group| (group.class, group.period_ns, group.pcp);
            let key = (stream.class, stream.period_ns, stream.tci.pcp);
            match groups.iter_mut().find(|group| of(group) == key) {
                Some(group) => group.streams.push((unique_id, stream)),
                None => {
                    let (class, period_ns, pcp) = key;
                    let streams = vec![(unique_id, stream)];
                    groups.push(Group { role: String::new(), class, period_ns, pcp, streams });
                }
            }
        }
        groups.sort_by_key(|group| group.period_ns);
        let roles: Vec<String> = groups.iter().map(|group| role(group, &groups)).collect();
        for (group, role) in groups.iter_mut().zip(roles) {
            group.role = role;
        }
        groups
    }

    /// The unique ids of the streams without a given destination, in their order.
    pub(super) fn without_destination(&self) -> Vec<u16> {
        let all = (self.unique_id..=u16::MAX).zip(self.streams(Definition::period_ns(self)));
        all.filter(|(_, stream)| stream.destination.is_none()).map(|(unique_id, _)| unique_id).collect()
    }

    /// The given destinations, each once.
    pub(super) fn given_destinations(&self) -> BTreeSet<Mac> {
        self.listed.iter().filter_map(|stream| stream.destination).collect()
    }

    /// The named streams, as a listener follows them.
    pub(crate) fn named(&self, source: Mac) -> Vec<NamedStream> {
        let named = (self.unique_id..=u16::MAX).zip(&self.listed).map(|(unique_id, stream)| NamedStream {
            name: stream.name.clone(),
            stream_id: frames::stream_id(source, unique_id),
            period_ns: stream.period_ns,
            transit_ns: stream.class.max_transit_ns(),
        });
        named.collect()
    }
}

/// The name of the thread of a group, which is unique among `all`.
fn role(group: &Group, all: &[Group]) -> String {
    let name = |group: &Group| match group.class {
        Class::A if group.period_ns == Class::A.interval_ns() => "A".to_owned(),
        Class::B if group.period_ns == Class::B.interval_ns() => "B".to_owned(),
        Class::A => analysis::format_exact(group.period_ns),
        Class::B => format!("B {}", analysis::format_exact(group.period_ns)),
    };
    if all.len() == 1 {
        return "talker".to_owned();
    }
    let own = name(group);
    match all.iter().filter(|other| name(other) == own).count() {
        1 => format!("talker {own}"),
        _ => format!("talker {own} priority {}", group.pcp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(name: &str, class: Class, period_ns: u64, pcp: u8) -> ListedStream {
        ListedStream {
            name: name.to_owned(),
            class,
            period_ns,
            tci: Tci { pcp, ..class.tci() },
            destination: None,
            format: Format::Aaf,
            channels: 2,
            samples: 6,
        }
    }

    #[test]
    fn streams_of_a_class_share_a_thread() {
        let listed = vec![
            stream("a", Class::B, 250_000, 2),
            stream("b", Class::A, 125_000, 3),
            stream("c", Class::B, 250_000, 2),
            stream("d", Class::A, 1_000_000, 3),
            stream("e", Class::B, 250_000, 4),
        ];
        let probe = StreamProbe { listed, unique_id: 7, ..StreamProbe::default() };
        let groups: Vec<_> = probe.groups(1).into_iter().map(|group| (group.names().concat(), group.role)).collect();
        let expected =
            [("b", "talker A"), ("ac", "talker B priority 2"), ("e", "talker B priority 4"), ("d", "talker 1ms")];
        assert_eq!(groups, expected.map(|(names, role)| (names.to_owned(), role.to_owned())));
        let ids: Vec<_> = probe.named([0; 6]).into_iter().map(|named| (named.name, named.stream_id)).collect();
        assert_eq!(
            (ids[0].clone(), ids[4].clone()),
            (("a".to_owned(), 7), ("e".to_owned(), 11)),
            "in the file's order"
        );
    }

    #[test]
    fn streams_without_a_file_are_one_group() {
        let probe = StreamProbe { further_streams: 2, ..StreamProbe::default() };
        let [group] = &probe.groups(500_000)[..] else { panic!("one group") };
        assert_eq!((group.streams.len(), group.period_ns, group.role.as_str()), (3, 500_000, "talker"));
        assert_eq!((group.names(), probe.named([0; 6])), (Vec::new(), Vec::new()));
    }
}
