//! The groups of two sides that belong together.

use record::versus::AmbiguousGroup;

use super::side::{Group, full_name};
use crate::compare::{Distance, distance_of_conditions, name_of};

/// The groups of two sides.
#[derive(Debug, Default)]
pub struct Matched<'a> {
    /// The groups that are compared: of the first side, and of the second.
    pub pairs: Vec<(&'a Group, &'a Group)>,
    /// Names of the groups without a counterpart.
    pub alone: Vec<String>,
    /// The groups with several counterparts of equal distance.
    pub ambiguous: Vec<AmbiguousGroup>,
}

/// A group of the first side, its nearest group of the second, and their distance.
type Candidate<'a> = (&'a Group, &'a Group, Distance);

/// Matches each group of `a` with the most similar one of `b` of the same kind of probe. A group is in one pair at most, that of
/// the smaller distance. Groups of equal distance are not compared: their order would decide.
pub fn matched<'a>(a: &'a [Group], b: &'a [Group]) -> Matched<'a> {
    let mut found = Matched::default();
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for ours in a {
        match &nearest(ours, b)[..] {
            [] => found.alone.push(name_of(&ours.conditions)),
            [(theirs, distance)] => candidates.push((ours, theirs, *distance)),
            several => found.ambiguous.push(ambiguous(ours, false, several)),
        }
    }
    for theirs in b {
        let of_theirs: Vec<&Candidate<'_>> =
            candidates.iter().filter(|(_, other, _)| std::ptr::eq(*other, theirs)).collect();
        let Some(least) = of_theirs.iter().map(|(.., distance)| *distance).min() else {
            let is_named = a.iter().any(|ours| nearest(ours, b).iter().any(|(other, _)| std::ptr::eq(*other, theirs)));
            if !is_named {
                found.alone.push(name_of(&theirs.conditions));
            }
            continue;
        };
        let (nearest, farther): (Vec<&Candidate<'_>>, Vec<&Candidate<'_>>) =
            of_theirs.into_iter().partition(|(.., distance)| *distance == least);
        found.alone.extend(farther.iter().map(|(ours, ..)| name_of(&ours.conditions)));
        match &nearest[..] {
            [(ours, ..)] => found.pairs.push((ours, theirs)),
            several => {
                let several: Vec<_> = several.iter().map(|(ours, _, distance)| (*ours, *distance)).collect();
                found.ambiguous.push(ambiguous(theirs, true, &several));
            }
        }
    }
    // In the order of the first side.
    let place = |group: &Group| a.iter().position(|ours| std::ptr::eq(ours, group));
    found.pairs.sort_by_key(|(ours, _)| place(ours));
    found
}

/// The groups at the smallest distance.
fn nearest<'a>(ours: &Group, all: &'a [Group]) -> Vec<(&'a Group, Distance)> {
    let distances =
        all.iter().filter_map(|theirs| Some((theirs, distance_of_conditions(&ours.conditions, &theirs.conditions)?)));
    let mut distances: Vec<(&Group, Distance)> = distances.collect();
    let least = distances.iter().map(|(_, distance)| *distance).min();
    distances.retain(|(_, distance)| Some(*distance) == least);
    distances
}

/// A group of one side with the equally similar ones of the other.
fn ambiguous(group: &Group, is_of_b: bool, several: &[(&Group, Distance)]) -> AmbiguousGroup {
    let similar = several.iter().map(|(group, _)| full_name(&group.conditions)).collect();
    AmbiguousGroup { group: full_name(&group.conditions), is_of_b, similar }
}

#[cfg(test)]
mod tests {
    use record::Figures;

    use super::*;

    fn group(phase: &str, policy: &str, period_ns: u64) -> Group {
        let conditions = Figures {
            probe: record::TIMER.to_owned(),
            phase: phase.to_owned(),
            policy: policy.to_owned(),
            period_ns: Some(period_ns),
            ..Figures::default()
        };
        Group { conditions, ..Group::default() }
    }

    fn pairs(a: &[Group], b: &[Group]) -> Vec<[String; 2]> {
        matched(a, b).pairs.iter().map(|(a, b)| [a, b].map(|group| full_name(&group.conditions))).collect()
    }

    #[test]
    fn the_order_of_groups_does_not_decide() {
        let (other, fifo) = (group("x", "other", 1_000_000), group("x", "fifo:90", 1_000_000));
        let sides = [[other.clone(), fifo.clone()], [fifo, other]];
        for b in &sides {
            let found = pairs(&sides[0], b);
            assert_eq!(found, [["x, other, 1 ms"; 2], ["x, fifo:90, 1 ms"; 2]], "each meets its own policy");
        }
    }

    #[test]
    fn equally_similar_groups_are_not_compared() {
        let (one, two) = (group("one", "", 1_000_000), group("two", "", 1_000_000));
        let third = group("third", "", 1_000_000);
        let (one_side, both) = ([third], [one, two]);
        for (a, b, is_of_b) in [(&one_side[..], &both[..], false), (&both[..], &one_side[..], true)] {
            let found = matched(a, b);
            assert!(found.pairs.is_empty() && found.alone.is_empty(), "{found:?}");
            let similar = ["one, 1 ms", "two, 1 ms"].map(str::to_owned).to_vec();
            assert_eq!(found.ambiguous, [AmbiguousGroup { group: "third, 1 ms".to_owned(), is_of_b, similar }]);
        }
    }

    #[test]
    fn a_group_is_compared_once() {
        let (rest, load) = (group("rest", "", 1_000_000), group("load", "", 1_000_000));
        let found = matched(&[load.clone(), rest.clone()][..], std::slice::from_ref(&rest)).alone;
        assert_eq!(found, ["load"], "the other side has no such group");
        assert_eq!(pairs(&[load, rest.clone()], &[rest]), [["rest, 1 ms"; 2]]);
        let udp = Group { conditions: Figures { probe: "udp".to_owned(), ..Figures::default() }, ..Group::default() };
        let kinds = [udp];
        assert_eq!(matched(&kinds, &[group("x", "", 1)]).alone, ["", "x"]);
    }
}
