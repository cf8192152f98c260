//! The expected load of models on boards that are not at hand.

use std::str::FromStr;

use amp::work::NEON_ERROR;
use thiserror::Error;

/// Number of frames of the blocks that the estimates are for.
pub const FRAMES: u32 = 64;

/// Clocks that a board can have, MHz.
const CLOCKS_MHZ: std::ops::RangeInclusive<u32> = 100..=10_000;

/// A kind of core.
#[derive(Debug, PartialEq)]
pub struct Core {
    /// Its name.
    pub name: &'static str,
    /// Lowest and highest expected number of instructions per cycle. Not measured on a board.
    pub instructions_a_cycle: [f64; 2],
}

/// The known cores. Where LLVM has a model of the core, the figures are those of llvm-mca 14 with some margin. The hot
/// loops of our models are of two kinds, and a model consists of both: sums, with 16 multiplications (FMLA of 128 bits)
/// for each 5 loads, and tanh, with a division for each 25 instructions. llvm-mca analysed loops of these two kinds that
/// were written by hand, and the compiled loops of the model A2 full, which are sums.
static CORES: [Core; 4] = [
    // Issues two instructions in order, but no FMLA during the two cycles of a load of 128 bits (ncnn,
    // docs/developer-guide/arm-a53-a55-dual-issue.md). llvm-mca: sums 0.67, tanh 0.40.
    Core { name: "cortex-a53", instructions_a_cycle: [0.35, 0.9] },
    // As before. llvm-mca: A2 full 0.75 to 0.8, sums 1.2, tanh 0.61.
    Core { name: "cortex-a55", instructions_a_cycle: [0.5, 1.1] },
    // Issues three instructions out of order. LLVM uses its model of the Cortex-A57, with one FMLA of 128 bits a cycle.
    // llvm-mca: A2 full 1.3 to 1.4, sums 1.5, tanh 0.57.
    Core { name: "cortex-a72", instructions_a_cycle: [0.6, 1.6] },
    // Issues four instructions out of order, to two pipelines of 128 bits (Arm Cortex-A76 Software Optimization Guide):
    // twice those of the Cortex-A72. LLVM 14 has no model of it, so these are twice the figures of the Cortex-A72.
    Core { name: "cortex-a76", instructions_a_cycle: [1.2, 3.2] },
];

/// Names of boards and processors, each with its core and clock in MHz: that of the Raspberry Pi 3B+, of the first
/// revision of the Raspberry Pi 4, of the Raspberry Pi 5, of Rockchip's RK3566, and of the large cores of the RK3588.
const BOARDS: [(&str, &str, u32); 5] = [
    ("pi3", "cortex-a53", 1400),
    ("pi4", "cortex-a72", 1500),
    ("pi5", "cortex-a76", 2400),
    ("rk3566", "cortex-a55", 1800),
    ("rk3588", "cortex-a76", 2400),
];

/// A core with its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Board {
    /// The core.
    pub core: &'static Core,
    /// Its clock, MHz.
    pub clock_mhz: u32,
}

/// Why a text names no board.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BoardError {
    /// Neither a core nor a board.
    #[error("unknown core or board; choose one of {}", known())]
    UnknownName,
    /// Not a clock.
    #[error("the clock must be 100 to 10000 MHz, e.g. pi4@1800")]
    Clock,
}

/// The names of all cores and boards.
fn known() -> String {
    let names: Vec<&str> = CORES.iter().map(|core| core.name).chain(BOARDS.map(|(name, ..)| name)).collect();
    names.join(", ")
}

/// `CORE[@MHZ]`. A core without a clock has that of its first board in the list.
impl FromStr for Board {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Self, BoardError> {
        let (name, clock) = text.split_once('@').map_or((text, None), |(name, clock)| (name, Some(clock)));
        let is_named = |(board, core, _): &&(&str, &str, u32)| [*board, *core].contains(&name);
        let (_, core, usual_mhz) = BOARDS.iter().find(is_named).ok_or(BoardError::UnknownName)?;
        let core = CORES.iter().find(|known| known.name == *core).ok_or(BoardError::UnknownName)?;
        let clock_mhz = clock.map_or(Ok(*usual_mhz), str::parse).map_err(|_| BoardError::Clock)?;
        if !CLOCKS_MHZ.contains(&clock_mhz) {
            return Err(BoardError::Clock);
        }
        Ok(Self { core, clock_mhz })
    }
}

impl Board {
    /// Lowest and highest expected share of the core, for a number of estimated instructions per frame and a sample
    /// rate in Hz. The error of the estimate is included.
    #[must_use]
    pub fn shares(&self, instructions: f64, rate_hz: f64) -> [f64; 2] {
        let [slow, fast] = self.core.instructions_a_cycle;
        let per_second = instructions * rate_hz / (f64::from(self.clock_mhz) * 1e6);
        [per_second * (1.0 - NEON_ERROR) / fast, per_second * (1.0 + NEON_ERROR) / slow]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cores_and_boards_are_accepted_with_and_without_a_clock() {
        let parse = |text: &str| text.parse().map(|Board { core, clock_mhz }| (core.name, clock_mhz));
        for (text, expected) in [
            ("cortex-a72", Ok(("cortex-a72", 1500))),
            ("cortex-a72@1800", Ok(("cortex-a72", 1800))),
            ("pi4@1800", Ok(("cortex-a72", 1800))),
            ("pi5", Ok(("cortex-a76", 2400))),
            ("rk3566", Ok(("cortex-a55", 1800))),
            ("cortex-a53@100", Ok(("cortex-a53", 100))),
            ("cortex-a53@99", Err(BoardError::Clock)),
            ("cortex-a53@10001", Err(BoardError::Clock)),
            ("pi4@", Err(BoardError::Clock)),
            ("pi4@1.8GHz", Err(BoardError::Clock)),
            ("@1800", Err(BoardError::UnknownName)),
            ("cortex-m7", Err(BoardError::UnknownName)),
            ("", Err(BoardError::UnknownName)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for core in &CORES {
            assert_eq!(parse(core.name).unwrap().0, core.name, "no board with this core");
        }
    }

    #[test]
    fn an_unknown_core_is_refused_with_the_known_ones() {
        let message = "cortex-m7".parse::<Board>().unwrap_err().to_string();
        for name in CORES.iter().map(|core| core.name).chain(BOARDS.map(|(name, ..)| name)) {
            assert!(message.contains(name), "{name}: {message}");
        }
    }

    #[test]
    fn the_share_is_that_of_the_cycles_of_a_second() {
        let board = Board { core: &CORES[2], clock_mhz: 1000 };
        let [low, high] = board.shares(10_000.0, 48_000.0);
        assert!((low - 0.48 * 0.9 / 1.6).abs() < 1e-9 && (high - 0.48 * 1.1 / 0.6).abs() < 1e-9, "{low} {high}");
    }
}
