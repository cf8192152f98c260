//! The relation between the system clocks of two machines, and which figures it permits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clocks, Machine};

/// A clock error may be at most this fraction (a tenth) of the limit for a time. This is our rule, not that of a
/// standard.
const SHARE_OF_LIMIT: u64 = 10;

/// The relation between the system clocks (CLOCK_REALTIME) of two machines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClockRelation {
    /// The common source of the two clocks.
    pub tie: ClockTie,
    /// Largest possible difference between the clocks, ns, as far as both ends can know; absent if nothing synchronises
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<u64>,
    /// Source of that bound, or why there is none: one sentence.
    pub words: String,
}

/// A common source of two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockTie {
    /// Both are the same clock.
    SameHost,
    /// Both follow the same grandmaster.
    Ptp,
    /// Nothing with an error bound.
    #[default]
    None,
}

impl ClockRelation {
    /// Determines the relation from the facts of both machines.
    ///
    /// Machines with the same boot id are one machine. Two that follow the same PTP grandmaster differ by at most the
    /// sum of their errors to it, plus the asymmetry of the path, which neither end can see. NTP gives no error bound
    /// that is of use here.
    #[must_use]
    pub fn between(a: &Machine, b: &Machine) -> Self {
        if a.boot_id.is_some() && a.boot_id == b.boot_id {
            return Self::same_host();
        }
        let none = Clocks::default();
        let sides = [a, b].map(|machine| (name(machine), machine.clocks.as_ref().unwrap_or(&none)));
        Self::by_ptp(&sides).unwrap_or_else(|why| Self { tie: ClockTie::None, error_ns: None, words: why })
    }

    /// The relation of a machine to itself.
    #[must_use]
    pub fn same_host() -> Self {
        let words = "both ends are on one machine and read one clock".to_owned();
        Self { tie: ClockTie::SameHost, error_ns: Some(0), words }
    }

    fn by_ptp([(name_a, a), (name_b, b)]: &[(&str, &Clocks); 2]) -> Result<Self, String> {
        let to_a = a.to_grandmaster().map_err(|why| not_by_ptp(name_a, a, &why))?;
        let to_b = b.to_grandmaster().map_err(|why| not_by_ptp(name_b, b, &why))?;
        if (to_a.grandmaster, to_a.domain) != (to_b.grandmaster, to_b.domain) {
            let of = |to: &crate::ToGrandmaster| format!("{} in domain {}", to.grandmaster, to.domain);
            return Err(format!("{name_a} follows {}, {name_b} follows {}", of(&to_a), of(&to_b)));
        }
        if to_a.seconds != to_b.seconds {
            return Err(format!(
                "PTP's time is {} s ahead of the system clock of {name_a}, and {} s of that of {name_b}",
                to_a.seconds, to_b.seconds
            ));
        }
        let error_ns = to_a.error_ns.saturating_add(to_b.error_ns);
        let words = format!(
            "both follow PTP grandmaster {} within {error_ns} ns ({name_a}: {}; {name_b}: {}); the asymmetry \
             of the path is unknown and not included",
            to_a.grandmaster, to_a.words, to_b.words
        );
        Ok(Self { tie: ClockTie::Ptp, error_ns: Some(error_ns), words })
    }

    /// True if one-way times between the machines may be shown, together with the error. Otherwise only round trips and
    /// delay variation are available.
    #[must_use]
    pub fn shows_one_way(&self) -> bool {
        self.error_ns.is_some()
    }

    /// Returns why a one-way time cannot be judged against `limit_ns`, so that the verdict is inconclusive; `None` if
    /// it can.
    #[must_use]
    pub fn inconclusive(&self, limit_ns: u64) -> Option<String> {
        let allowed_ns = limit_ns / SHARE_OF_LIMIT;
        match self.error_ns {
            None => Some(format!("the two clocks cannot be compared: {}", self.words)),
            Some(error_ns) if error_ns > allowed_ns => Some(format!(
                "the two clocks may differ by {error_ns} ns; a limit of {limit_ns} ns allows at most {allowed_ns} ns \
                 (a tenth)"
            )),
            Some(_) => None,
        }
    }
}

fn name(machine: &Machine) -> &str {
    machine.hostname.as_deref().unwrap_or("a machine without a host name")
}

/// Says that a machine is not synchronised by PTP, and why.
fn not_by_ptp(name: &str, clocks: &Clocks, why: &str) -> String {
    match &clocks.kernel {
        Some(kernel) if kernel.synchronised && clocks.ptp.is_none() => {
            format!("{name} is not synchronised by PTP: {why}; the source that its clock follows gives no error bound")
        }
        _ => format!("{name} is not synchronised by PTP: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        KernelClock,
        clocks::tests::{card, follower},
    };

    fn machine(name: &str, boot: &str, clocks: Option<Clocks>) -> Machine {
        let some = |text: &str| Some(text.to_owned());
        Machine { hostname: some(name), boot_id: some(boot), clocks, ..Machine::default() }
    }

    fn between(a: Clocks, b: Clocks) -> ClockRelation {
        ClockRelation::between(&machine("a", "1", Some(a)), &machine("b", "2", Some(b)))
    }

    #[test]
    fn machines_with_one_boot_id_have_one_clock() {
        let relation = ClockRelation::between(&machine("a", "1", None), &machine("a", "1", Some(follower("gm", 5))));
        assert_eq!((relation.tie, relation.error_ns), (ClockTie::SameHost, Some(0)));
        assert_eq!(relation.inconclusive(10), None);
        let nameless = ClockRelation::between(&Machine::default(), &Machine::default());
        assert_eq!(nameless.tie, ClockTie::None, "two unknown boot ids are not equal");
    }

    #[test]
    fn adds_the_errors_to_a_common_grandmaster() {
        let relation = between(follower("gm", 701), card("gm", 40, 37_000_000_200));
        assert_eq!((relation.tie, relation.error_ns), (ClockTie::Ptp, Some(701 + 40 + 200 + 400)));
        assert!(relation.shows_one_way() && relation.words.contains("asymmetry of the path"), "{}", relation.words);
    }

    #[test]
    fn relates_a_grandmaster_to_its_follower() {
        let mut master = follower("gm", 0);
        if let Some(ptp) = &mut master.ptp {
            ptp.is_grandmaster = true;
            ptp.ports[0].state = "MASTER".to_owned();
        }
        assert_eq!(between(master, follower("gm", 90)).error_ns, Some(90));
    }

    #[test]
    fn clocks_without_a_common_source_have_no_error_bound() {
        let none = |a, b| {
            let relation = between(a, b);
            assert_eq!((relation.tie, relation.error_ns, relation.shows_one_way()), (ClockTie::None, None, false));
            assert!(relation.inconclusive(u64::MAX).is_some_and(|why| why.contains(&relation.words)));
            relation.words
        };
        assert_eq!(none(follower("x", 1), follower("y", 1)), "a follows x in domain 0, b follows y in domain 0");
        assert_eq!(none(follower("x", 1), Clocks::default()), "b is not synchronised by PTP: ptp4l does not run here");
        let ntp =
            Clocks { kernel: Some(KernelClock { synchronised: true, ..KernelClock::default() }), ..Clocks::default() };
        assert!(none(ntp, follower("x", 1)).ends_with("the source that its clock follows gives no error bound"));
        let utc = card("gm", 40, 37_000_000_000);
        assert_eq!(
            none(card("gm", 40, 0), utc),
            "PTP's time is 0 s ahead of the system clock of a, and 37 s of that of b"
        );
    }

    #[test]
    fn an_error_above_a_tenth_of_the_limit_is_inconclusive() {
        let relation = between(follower("gm", 600), follower("gm", 400));
        assert_eq!(relation.inconclusive(10_000), None);
        let why = relation.inconclusive(9_999).unwrap();
        assert_eq!(why, "the two clocks may differ by 1000 ns; a limit of 9999 ns allows at most 999 ns (a tenth)");
    }
}
