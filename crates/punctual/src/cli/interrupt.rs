//! Options of `measure interrupt`, and those that it shares with `pair interrupt`.

use ::judge::JudgeAddress;
use campaign::probe::{
    Definition, InterruptProbe,
    interrupt::{GpioLine, Judge, Judged, SourceName},
};
use clap::Args;
use sys::sched::Policy;

use super::{Common, Placement, Rounds, WakeUps, period};

/// Options of `measure interrupt`.
#[derive(Debug, Args)]
pub struct Interrupt {
    /// Wait for interrupts of this source.
    ///
    /// A timer of the HPET of PCs (hpet), rising edges of a GPIO line (gpio:CHIP/LINE), at ACK of a parallel port
    /// (parport:N), at CTS of a serial port (serial:PORT) or at a pin of a PTP clock (ptp:N/PIN), an event of a counter (counter:N/EVENT), a sample of an
    /// industrial I/O device (iio:N/TRIGGER), a source of a pulse per second (pps:N), an input device (evdev:N), the seconds of a
    /// real-time clock (rtc:N), or a UIO device (uio:N, or uio:N/listen if its program runs).
    /// `--list` shows which of them this machine has.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<SourceName>,
    /// Options shared with `pair interrupt`.
    #[command(flatten)]
    pub shared: InterruptOptions,
    /// Run its interrupt threads at priority N, 1 to 99.
    ///
    /// The threads irq/N-* of the interrupts of --source, under SCHED_FIFO. They are put back afterwards.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub irq_priority: Option<u8>,
    /// Move its interrupts to this CPU.
    ///
    /// The interrupts of --source, with their threads. They are put back afterwards.
    #[arg(long, value_name = "CPU")]
    pub irq_cpu: Option<u32>,
    /// List what this machine offers.
    #[arg(long)]
    pub list: bool,
    /// Run on this CPU [default: last isolated, or last].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// fifo:N, rr:N, other.
    ///
    /// The policy of the thread that waits. The priority N is 1 to 99. The thread that makes edges (--drive) has one less.
    #[arg(long, default_value_t = InterruptProbe::default().policy(None))]
    pub policy: Policy,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// Options of measurements with deadlines.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// The number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}

/// Options of the lines of a source, for `measure interrupt` and `pair interrupt`.
#[derive(Debug, Args)]
pub struct InterruptOptions {
    /// Make the edges on this GPIO line.
    ///
    /// An output line that a wire connects to the line of --source. The time of each edge is then known, and the way to the
    /// kernel is measured, too. Without it, times begin at the kernel's stamp.
    #[arg(long, value_name = "CHIP/LINE")]
    pub drive: Option<GpioLine>,
    /// Answer each edge on this GPIO line, for --judge.
    ///
    /// The thread sets this output line active as soon as it wakes, and inactive again at once.
    #[arg(long, value_name = "CHIP/LINE", requires = "judge", conflicts_with = "drive")]
    pub answer: Option<GpioLine>,
    /// Let this outside judge ask, and measure the answers.
    ///
    /// A serial line with the judge of punctual (/dev/ttyACM0, or /dev/ttyUSB0,115200 for another speed than 1 Mbit/s), or
    /// the name or address of a board that runs latmon (HOST or HOST:PORT). The judge makes the edges of the line of
    /// --source, and measures the time until the edge of the line of --answer with its own clock.
    /// For `pair interrupt`, the lines are those of the other machine, and the judge is connected to this one.
    #[arg(long, value_name = "WHERE", requires = "answer")]
    pub judge: Option<JudgeAddress>,
    /// Expect this period [default: 1ms; pps 1s].
    ///
    /// The HPET, parallel and serial ports, --drive and --judge use it. For other sources, it is the period of the use that a profile
    /// judges.
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
}

impl InterruptOptions {
    /// The probe for this source. Its judge is connected to this machine.
    pub fn probe(&self, source: SourceName) -> InterruptProbe {
        let judged = self.answer.clone().zip(self.judge.clone());
        InterruptProbe {
            source,
            drive: self.drive.clone(),
            judged: judged.map(|(answer, judge)| Judged { answer, judge: Judge::Here(judge) }),
            period_ns: self.period,
            ..InterruptProbe::default()
        }
    }
}
