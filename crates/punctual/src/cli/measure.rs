//! Commands of `measure`, and the options of `measure timer`.

use campaign::probe::{Definition, TimerProbe};
use clap::{Args, Subcommand};
use machine::CpuList;
use sys::sched::Policy;

use super::{
    Audio, Common, Interrupt, Noise, Ping, Placement, Process, RoundTrip, Rounds, Stream, Threads, Udp, WakeUps,
    duration_or_zero, period,
};

/// The measurements.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// Measure how late a thread wakes after its deadline, as cyclictest does.
    ///
    /// Examples:
    ///   punctual measure timer --cpus 2-3 --period 250us --load cache --load switch
    ///   punctual measure timer --profile avb-class-a --duration 1h
    #[command(verbatim_doc_comment)]
    Timer(Box<Timer>),
    /// Measure several periodic threads at once, or find the best CPUs for two.
    ///
    /// Each thread has its own CPU, priority and period.
    ///
    /// Examples:
    ///   punctual measure threads --thread base=25us,cpu=2 --thread servo=1ms,cpu=3
    ///   punctual measure threads --matrix --cpus 2-3 --cell-duration 2m
    #[command(verbatim_doc_comment)]
    Threads(Box<Threads>),
    /// Measure the gaps in a loop that never sleeps, like oslat, and find their causes.
    ///
    /// A gap is a time in which something else used the CPU; sysjitter and osnoise also measure it. Needs no
    /// privileges, except to find causes.
    ///
    /// Examples:
    ///   punctual measure noise --cpus 3 --duration 1m
    ///   punctual measure noise --policy fifo:90 --load memory --load-cpus 0-2
    #[command(verbatim_doc_comment)]
    Noise(Box<Noise>),
    /// Measure UDP round trips to another machine that runs `punctual echo`.
    ///
    /// Sends on a fixed schedule that does not depend on answers. A round trip begins at the scheduled time.
    ///
    /// Examples:
    ///   punctual measure udp 192.0.2.1 --period 250us --duration 1m
    ///   sudo punctual measure udp --self --load cpu
    #[command(verbatim_doc_comment)]
    Udp(Box<Udp>),
    /// Measure round trips to a device that runs nothing of punctual's (ICMP echo).
    ///
    /// Sends ICMP echo requests on a fixed schedule, as `measure udp` sends datagrams, with the same parts of the time on
    /// this machine. Needs root, or a group in net.ipv4.ping_group_range.
    ///
    /// Examples:
    ///   sudo punctual measure ping 192.0.2.1 --duration 1m
    ///   sudo punctual measure ping plc.example --period 4ms --stamps all
    #[command(verbatim_doc_comment)]
    Ping(Box<Ping>),
    /// Measure round trips of Ethernet frames to a machine that runs `punctual mirror`.
    ///
    /// Sends raw frames on a fixed schedule, as `measure udp` sends datagrams, with EtherType, VLAN and priority of your
    /// choice. A mirror of another program serves, too: it must return each frame with exchanged addresses.
    ///
    /// Examples:
    ///   sudo punctual measure round-trip eth0 --to 02:00:00:00:00:02 --priority 3
    ///   sudo punctual measure round-trip --self --load cpu
    #[command(verbatim_doc_comment, name = "round-trip")]
    RoundTrip(Box<RoundTrip>),
    /// Send or receive an AVB stream (IEEE 1722), and measure its timing.
    ///
    /// Reports late packets, missed slots, gaps, loss and the interface where frames were lost. The talker wakes
    /// --wakeup-offset before each slot and spins until the slot begins. Frames are sent on the named interface only.
    ///
    /// Examples:
    ///   sudo punctual measure stream talk eth0 --cpu 3 --wakeup-offset 8us
    ///   sudo punctual measure stream --self --profile avb-class-a
    #[command(verbatim_doc_comment)]
    Stream(Box<Stream>),
    /// Measure the time from an interrupt of a device to the wake-up of a thread.
    ///
    /// The device is a timer chip whose counter shows when it raised the interrupt, a GPIO line, a parallel port, a pin
    /// of a network card's clock, a counter, a converter, a pulse per second or an input device.
    ///
    /// Examples:
    ///   sudo punctual measure interrupt --source hpet --duration 1m
    ///   sudo punctual measure interrupt --source gpio:0/17 --drive 0/27 --load cpu
    #[command(verbatim_doc_comment)]
    Interrupt(Box<Interrupt>),
    /// Measure when audio periods are ready, and find the smallest buffer without xruns.
    ///
    /// Plays a guitar amplifier, by default with deadlines of the clock instead of a sound card. A spike is a period
    /// that takes more than half of the time until its deadline.
    ///
    /// Examples:
    ///   punctual measure audio --frames 64 --duration 1m
    ///   punctual measure audio --find-buffer --duration 30s --load cpu
    #[command(verbatim_doc_comment)]
    Audio(Box<Audio>),
    /// Measure wake-up latency, preemption and missed deadlines of your own program.
    ///
    /// Uses the scheduler's trace events, which need root. The program does not have to be changed.
    ///
    /// Examples:
    ///   sudo punctual measure process "$(pidof jackd)" --period 1333us
    ///   sudo punctual measure process --period servo=1ms -- ./machine --axes 3
    #[command(verbatim_doc_comment)]
    Process(Box<Process>),
}

impl Measure {
    /// The options of all measurements.
    pub fn common(&self) -> &Common {
        match self {
            Self::Timer(options) => &options.common,
            Self::Threads(options) => &options.common,
            Self::Noise(options) => &options.common,
            Self::Udp(options) => &options.shared.common,
            Self::Ping(options) => &options.shared.common,
            Self::RoundTrip(options) => &options.shared.common,
            Self::Stream(options) => &options.shared.common,
            Self::Interrupt(options) => &options.common,
            Self::Audio(options) => &options.common,
            Self::Process(options) => &options.common,
        }
    }

    /// The number of rounds with a record each; `None` for a single measurement, also for a matrix, which has rounds itself.
    pub fn rounds(&self) -> Option<u32> {
        match self {
            Self::Timer(options) => options.rounds.rounds,
            Self::Threads(options) => options.rounds.filter(|_| !options.matrix),
            Self::Noise(options) => options.rounds.rounds,
            Self::Udp(options) => options.shared.rounds.rounds,
            Self::Ping(options) => options.shared.rounds.rounds,
            Self::RoundTrip(options) => options.shared.rounds.rounds,
            Self::Stream(options) => options.shared.rounds.rounds,
            Self::Interrupt(options) => options.rounds.rounds,
            Self::Audio(options) => options.rounds.rounds,
            Self::Process(_) => None,
        }
    }

    /// The values of --against; none for measurements without that option.
    pub fn against(&self) -> &[String] {
        match self {
            Self::Timer(options) => &options.wake_ups.against,
            Self::Threads(options) => &options.wake_ups.against,
            Self::Udp(options) => &options.shared.against,
            Self::Ping(options) => &options.shared.against,
            Self::RoundTrip(options) => &options.shared.against,
            Self::Stream(options) => &options.shared.wake_ups.against,
            Self::Interrupt(options) => &options.wake_ups.against,
            Self::Audio(options) => &options.wake_ups.against,
            Self::Noise(_) | Self::Process(_) => &[],
        }
    }

    /// The option --cpu of a measurement that has one: the CPU of its first thread. `None` if it takes a list of CPUs.
    pub fn cpu_mut(&mut self) -> Option<&mut Option<u32>> {
        match self {
            Self::Udp(options) => Some(&mut options.shared.cpu),
            Self::Ping(options) => Some(&mut options.shared.cpu),
            Self::RoundTrip(options) => Some(&mut options.shared.cpu),
            Self::Stream(options) => Some(&mut options.shared.cpu),
            Self::Interrupt(options) => Some(&mut options.cpu),
            Self::Audio(options) => Some(&mut options.cpu),
            Self::Timer(_) | Self::Threads(_) | Self::Noise(_) | Self::Process(_) => None,
        }
    }
}

/// Options of `measure timer`.
#[derive(Debug, Args)]
pub struct Timer {
    /// Measure these CPUs, e.g. 0,2-3 [default: all online].
    ///
    /// Isolated CPUs are included.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Use this period [default: of the profile, or 1ms].
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// Measure this many wake-ups on each CPU.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "endless"], value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// fifo:N, rr:N, deadline:R/D/P, other.
    ///
    /// The policy of the thread. The priority N is 1 to 99. The times of deadline:RUNTIME/DEADLINE/PERIOD are
    /// durations, e.g. 50us.
    #[arg(long, default_value_t = TimerProbe::default().policy(None))]
    pub policy: Policy,
    /// Shift deadlines from CPU to CPU.
    ///
    /// With 0ns, all CPUs wake at once.
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, default_value = "0ns")]
    pub offset: u64,
    /// Measure the cost of the trace, after the run.
    ///
    /// It compares wake-ups with the trace off and on, which takes half a second.
    #[arg(long)]
    pub blame_cost: bool,
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
