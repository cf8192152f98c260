//! A matrix: two threads on each pair of CPUs, with and without a load, in several rounds.

use loads::LoadSpec;
use machine::CpuList;
use record::NOLOAD;

use crate::{
    plan::{Length, PhasePlan},
    probe::threads::{self, ThreadAsk},
};

/// Default duration of all phases together, ns.
const TOTAL_NS: u64 = 120_000_000_000;
/// Overhead of a phase, ns: creating threads, and starting and ending the loads of every second phase.
const OVERHEAD_NS: u64 = 30_000_000;
/// Shortest default duration of a cell in one round, ns. A shorter one sees too few wake-ups.
const ROUND_LEAST_NS: u64 = 200_000_000;
/// Default number of rounds. By chance, one pair is better than another in all three rounds in one case of twenty.
const ROUNDS: u32 = 3;

/// A matrix to be measured.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The thread of the rows and that of the columns.
    pub threads: [ThreadAsk; 2],
    /// The CPUs whose pairs are measured.
    pub cpus: CpuList,
    /// The loads of the second table.
    pub loads: Vec<LoadSpec>,
    /// Duration of each cell in each round, ns.
    pub round_ns: u64,
    /// Number of rounds; each measures every cell once.
    pub rounds: u32,
}

impl Matrix {
    /// Chooses the duration and the number of rounds if they are `None`, so that the matrix takes two minutes. With
    /// many CPUs there is only one round, and with very many the matrix takes longer. `cell_ns` is the duration of a
    /// cell in all rounds.
    #[must_use]
    pub fn new(
        threads: [ThreadAsk; 2],
        cpus: CpuList,
        loads: Vec<LoadSpec>,
        cell_ns: Option<u64>,
        rounds: Option<u32>,
    ) -> Self {
        let cells = (2 * cpus.len() * cpus.len()).max(1) as u64;
        let fits = |rounds: u32| (TOTAL_NS / (cells * u64::from(rounds))).saturating_sub(OVERHEAD_NS);
        let enough = cell_ns.map_or_else(|| fits(ROUNDS), |cell_ns| cell_ns / u64::from(ROUNDS)) >= ROUND_LEAST_NS;
        let rounds = rounds.unwrap_or(if enough { ROUNDS } else { 1 }).max(1);
        let round_ns = match cell_ns {
            Some(cell_ns) => (cell_ns / u64::from(rounds)).max(1),
            None => fits(rounds).max(ROUND_LEAST_NS),
        };
        Self { threads, cpus, loads, round_ns, rounds }
    }

    /// Estimated duration of the matrix, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let phases = 2 * (self.cpus.len() * self.cpus.len()) as u64 * u64::from(self.rounds);
        phases * self.round_ns.saturating_add(OVERHEAD_NS)
    }

    /// The phases: in each round first all pairs without load, then all pairs with the loads.
    #[must_use]
    pub fn phases(&self) -> Vec<PhasePlan> {
        let mut phases = Vec::new();
        for round in 1..=self.rounds {
            for loads in [&Vec::new(), &self.loads] {
                for row in &self.cpus {
                    phases.extend(self.cpus.iter().map(|column| self.phase([row, column], loads, round)));
                }
            }
        }
        phases
    }

    fn phase(&self, cpus: [u32; 2], loads: &[LoadSpec], round: u32) -> PhasePlan {
        let mut asks = self.threads.clone();
        asks.iter_mut().zip(cpus).for_each(|(ask, cpu)| ask.cpu = Some(cpu));
        let [row, column] = &asks;
        let load_name = if loads.is_empty() { NOLOAD } else { "load" };
        PhasePlan {
            name: format!("{} {}, {} {}, {load_name}, round {round}", row.role, cpus[0], column.role, cpus[1]),
            period_ns: row.period_ns.min(column.period_ns),
            length: Length::Duration(self.round_ns),
            loads: loads.to_vec(),
            threads: threads::place(&asks, cpus[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(cpus: &str, cell_ns: Option<u64>, rounds: Option<u32>) -> Matrix {
        let [base, servo] = &ThreadAsk::base_and_servo()[..] else { panic!("two") };
        let loads = vec!["cpu:shell".parse().unwrap()];
        Matrix::new([base.clone(), servo.clone()], cpus.parse().unwrap(), loads, cell_ns, rounds)
    }

    #[test]
    fn takes_two_minutes_unless_cells_get_too_short() {
        let plans = ["0", "0-1", "0-3", "0-7", "0-15", "0-31"].map(|cpus| {
            let matrix = matrix(cpus, None, None);
            (matrix.rounds, matrix.phases().len(), (matrix.total_ns() + 500_000_000) / 1_000_000_000)
        });
        assert_eq!(plans, [(3, 6, 120), (3, 24, 120), (3, 96, 120), (3, 384, 120), (1, 512, 120), (1, 2048, 471)]);
    }

    #[test]
    fn measures_each_pair_without_and_with_load_in_each_round() {
        let phases = matrix("0,2", Some(2_000), Some(2)).phases();
        let measured: Vec<_> = phases
            .iter()
            .map(|phase| (phase.threads[0].cpu, phase.threads[1].cpu, phase.loads.len(), phase.length))
            .collect();
        let one = Length::Duration(1_000);
        let pairs = [(0, 0), (0, 2), (2, 0), (2, 2)];
        let round: Vec<_> =
            [0, 1].iter().flat_map(|&load| pairs.map(|(row, column)| (row, column, load, one))).collect();
        assert_eq!(measured, [round.clone(), round].concat());
        let mut names: Vec<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names[5], "base 0, servo 2, load, round 1");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 16);
    }

    #[test]
    fn makes_one_cell_for_one_cpu() {
        let phases = matrix("3", Some(1_000), Some(1)).phases();
        assert_eq!(
            phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(),
            ["base 3, servo 3, noload, round 1", "base 3, servo 3, load, round 1"]
        );
    }
}
