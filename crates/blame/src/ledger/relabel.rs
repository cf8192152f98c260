//! Changes the cause of the record's spikes that are stalls of all CPUs. On its own, each CPU explains such a stall
//! differently.

use std::collections::HashSet;

use record::{Cause, CauseKind, Record, Spike};

use super::{Ledger, stalls};

impl Ledger {
    /// Gives the cause "all CPUs" to the record's spikes that the accounts count as such stalls; the detail contains
    /// the previous cause. The shares do not change. `measured` are the measured CPUs.
    pub fn relabel_stalls(&self, record: &mut Record, measured: &[u32]) {
        let in_stall = stalls::in_stall_of_all_cpus(&self.pending, measured);
        let in_stall: HashSet<(&str, u32, u64, i64)> = self
            .pending
            .iter()
            .zip(in_stall)
            .filter(|(_, in_stall)| *in_stall)
            .map(|(stall, _)| (self.phases[stall.phase].as_str(), stall.cpu, stall.at_ns, stall.lateness_ns))
            .collect();
        for series in &mut record.series {
            let Some(cpu) = series.cpu else { continue };
            let phase = series.phase.as_str();
            let of_all = |spike: &&mut Spike| in_stall.contains(&(phase, cpu, spike.at_ns, spike.lateness_ns));
            series.spikes.iter_mut().filter(of_all).for_each(blame_all_cpus);
        }
    }
}

fn blame_all_cpus(spike: &mut Spike) {
    let Some(main) = spike.culprits.first_mut() else { return };
    let cause = Cause { detail: format!("seen as {}", main.cause.title()), ..Cause::new(CauseKind::AllCpus, "") };
    let seen = std::mem::replace(&mut main.cause, cause.clone());
    let is_it = |other: &Cause| (other.kind, &other.name, other.number) == (seen.kind, &seen.name, seen.number);
    for stretch in spike.timeline.iter_mut().filter(|stretch| stretch.start_ns >= 0 && is_it(&stretch.cause)) {
        stretch.cause = cause.clone();
    }
}

#[cfg(test)]
mod tests {
    use record::{Culprit, Series, Stretch};

    use super::*;
    use crate::{Entry, RemedyFacts};

    const MS: u64 = 1_000_000;

    fn spike(at_ns: u64, lateness_ns: i64, kind: CauseKind) -> Spike {
        let rest_ns = 6_000;
        let causes = [Cause::new(kind, "dd"), Cause::new(CauseKind::WakeUp, "")];
        let shares = [lateness_ns.cast_unsigned() - rest_ns, rest_ns];
        let culprits = causes.iter().zip(shares).map(|(cause, ns)| Culprit { cause: cause.clone(), ns }).collect();
        let stretch = |start_ns, ns, cause: &Cause| Stretch { start_ns, ns, cause: cause.clone() };
        let timeline = vec![
            stretch(-50_000, 50_000, &causes[0]),
            stretch(0, shares[0], &causes[0]),
            stretch(shares[0].cast_signed(), rest_ns, &causes[1]),
        ];
        Spike { lateness_ns, at_ns, culprits, timeline, ..Spike::default() }
    }

    /// Two CPUs with different first deadlines, and the ledger of their spikes.
    fn run(of_cpus: [Vec<Spike>; 2]) -> (Ledger, Record) {
        let mut ledger = Ledger::default();
        let mut record = Record::default();
        for (cpu, spikes) in (0..).zip(of_cpus) {
            for &Spike { at_ns, lateness_ns, ref culprits, .. } in &spikes {
                let deadline_ns = 7 * MS + u64::from(cpu) * 10_000 + at_ns;
                ledger.add(Entry {
                    thread: (1, 9),
                    cpu,
                    phase: "rest",
                    at_ns,
                    deadline_ns,
                    lateness_ns,
                    culprits,
                    may_coincide: false,
                });
            }
            record.series.push(Series { phase: "rest".to_owned(), cpu: Some(cpu), spikes, ..Series::default() });
        }
        (ledger, record)
    }

    #[test]
    fn relabels_what_the_ledger_counts() {
        let (late, idle) = (CauseKind::LateInterrupt, CauseKind::IdleExit);
        let alone = spike(90 * MS, 120_000, late);
        let (ledger, mut record) =
            run([vec![spike(10 * MS, 306_000, late), alone.clone()], vec![spike(10 * MS, 296_000, idle)]]);
        ledger.relabel_stalls(&mut record, &[0, 1]);

        let main = |cpu: usize, spike: usize| &record.series[cpu].spikes[spike].culprits[0].cause;
        assert_eq!(main(0, 0).kind, CauseKind::AllCpus);
        assert_eq!(
            main(0, 0).in_full(),
            "all CPUs at once: firmware or hypervisor (seen as interrupt came late, while dd ran)"
        );
        assert_eq!(main(1, 0).detail, "seen as return from idle state dd");
        assert_eq!(record.series[0].spikes[1], alone, "the other CPU was running");
        for spike in record.series.iter().flat_map(|series| &series.spikes) {
            assert_eq!(spike.culprits.iter().map(|culprit| culprit.ns).sum::<u64>(), spike.lateness_ns.cast_unsigned());
        }
        let kinds: Vec<_> = record.series[0].spikes[0].timeline.iter().map(|stretch| stretch.cause.kind).collect();
        assert_eq!(kinds, [late, CauseKind::AllCpus, CauseKind::WakeUp], "the time before the deadline is unchanged");

        let facts = RemedyFacts { measured: vec![0, 1], ..RemedyFacts::default() };
        for account in ledger.accounts(&facts).iter().filter(|account| account.count > 0) {
            let found = record.series.iter().flat_map(|series| &series.spikes);
            let found = found.filter(|spike| spike.culprits[0].cause.kind == account.cause.kind).count();
            assert_eq!(found as u64, account.count, "{:?}", account.cause);
        }
    }

    #[test]
    fn leaves_a_spike_of_one_cpu_unchanged() {
        let (ledger, mut record) = run([vec![spike(10 * MS, 306_000, CauseKind::LateInterrupt)], vec![]]);
        let before = record.clone();
        ledger.relabel_stalls(&mut record, &[0, 1]);
        assert_eq!(record, before);
    }
}
