//! A matrix: two threads on each pair of CPUs, at rest and beside a load, round after round.

use loads::LoadSpec;
use machine::CpuList;
use record::NOLOAD;

use crate::{
    plan::{Length, PhasePlan},
    probe::threads::{self, ThreadAsk},
};

/// How long the whole takes where nothing else is asked for, ns.
const WHOLE_NS: u64 = 120_000_000_000;
/// What a phase takes besides measuring, ns: making threads, starting and ending the loads of every second one.
const AROUND_NS: u64 = 30_000_000;
/// A round is never shorter than this unless asked for, ns: what is shorter sees next to nothing.
const ROUND_LEAST_NS: u64 = 200_000_000;
/// Rounds where nothing else is asked for: with three, one pair is better than another in all of them by chance in one
/// case of twenty.
const ROUNDS: u32 = 3;

/// What a matrix is to measure.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The thread of the rows and that of the columns.
    pub threads: [ThreadAsk; 2],
    /// The CPUs that are paired.
    pub cpus: CpuList,
    /// What runs beside the threads in the second table.
    pub loads: Vec<LoadSpec>,
    /// How long each cell is measured in each round, ns.
    pub round_ns: u64,
    /// How often each cell is measured.
    pub rounds: u32,
}

impl Matrix {
    /// Fills in what was not asked for, so that the whole takes two minutes. On many CPUs each cell is measured only once;
    /// on very many it takes longer. `cell_ns` is for all rounds of a cell together.
    #[must_use]
    pub fn new(
        threads: [ThreadAsk; 2],
        cpus: CpuList,
        loads: Vec<LoadSpec>,
        cell_ns: Option<u64>,
        rounds: Option<u32>,
    ) -> Self {
        let cells = (2 * cpus.len() * cpus.len()).max(1) as u64;
        let fits = |rounds: u32| (WHOLE_NS / (cells * u64::from(rounds))).saturating_sub(AROUND_NS);
        let enough = cell_ns.map_or_else(|| fits(ROUNDS), |cell_ns| cell_ns / u64::from(ROUNDS)) >= ROUND_LEAST_NS;
        let rounds = rounds.unwrap_or(if enough { ROUNDS } else { 1 }).max(1);
        let round_ns = match cell_ns {
            Some(cell_ns) => (cell_ns / u64::from(rounds)).max(1),
            None => fits(rounds).max(ROUND_LEAST_NS),
        };
        Self { threads, cpus, loads, round_ns, rounds }
    }

    /// How long the whole takes, ns, about.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let phases = 2 * (self.cpus.len() * self.cpus.len()) as u64 * u64::from(self.rounds);
        phases * self.round_ns.saturating_add(AROUND_NS)
    }

    /// The phases: in each round first all pairs at rest, then all of them beside the loads.
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
        let beside = if loads.is_empty() { NOLOAD } else { "load" };
        PhasePlan {
            name: format!("{} {}, {} {}, {beside}, round {round}", row.role, cpus[0], column.role, cpus[1]),
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
    fn the_whole_takes_two_minutes_unless_cells_would_see_nothing() {
        let seen = ["0", "0-1", "0-3", "0-7", "0-15", "0-31"].map(|cpus| {
            let matrix = matrix(cpus, None, None);
            (matrix.rounds, matrix.phases().len(), (matrix.total_ns() as f64 / 1e9).round() as u64)
        });
        assert_eq!(seen, [(3, 6, 120), (3, 24, 120), (3, 96, 120), (3, 384, 120), (1, 512, 120), (1, 2048, 471)]);
    }

    #[test]
    fn each_pair_is_measured_at_rest_and_then_under_load_in_each_round() {
        let phases = matrix("0,2", Some(2_000), Some(2)).phases();
        let told: Vec<_> = phases
            .iter()
            .map(|phase| (phase.threads[0].cpu, phase.threads[1].cpu, phase.loads.len(), phase.length))
            .collect();
        let one = Length::Duration(1_000);
        let pairs = [(0, 0), (0, 2), (2, 0), (2, 2)];
        let round: Vec<_> =
            [0, 1].iter().flat_map(|&load| pairs.map(|(row, column)| (row, column, load, one))).collect();
        assert_eq!(told, [round.clone(), round].concat());
        let mut names: Vec<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names[5], "base 0, servo 2, load, round 1");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 16);
    }

    #[test]
    fn one_cpu_makes_one_cell() {
        let phases = matrix("3", Some(1_000), Some(1)).phases();
        assert_eq!(
            phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>(),
            ["base 3, servo 3, noload, round 1", "base 3, servo 3, load, round 1"]
        );
    }
}
