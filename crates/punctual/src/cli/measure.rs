//! `punctual measure`: one struct of options a probe.

use campaign::probe::{Definition, TimerProbe};
use clap::{Args, Subcommand};
use machine::CpuList;
use sys::sched::Policy;

use super::{Audio, Common, Noise, Placement, Process, Stream, Threads, Udp, WakeUps, duration_or_zero, period};

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// How late a thread wakes that sleeps until a deadline: what cyclictest measures.
    ///
    /// Examples:
    ///   punctual measure timer --duration 1m
    ///   punctual measure timer --cpus 2-3 --period 250us --load cache --load switch
    ///   punctual measure timer --profile avb-class-a --duration 1h
    #[command(verbatim_doc_comment)]
    Timer(Box<Timer>),
    /// How late two or more periodic threads wake at once, each with its own CPU, priority and period; and on which CPUs to
    /// put them.
    ///
    /// Examples:
    ///   punctual measure threads --duration 1m
    ///   punctual measure threads --thread base=25us,cpu=2 --thread servo=1ms,cpu=3
    ///   punctual measure threads --threads 64 --period 1ms
    ///   punctual measure threads --matrix
    ///   punctual measure threads --matrix --cpus 2-3 --cell-duration 2m
    #[command(verbatim_doc_comment)]
    Threads(Box<Threads>),
    /// What takes the CPU from a thread that never sleeps: the gaps that oslat, sysjitter and osnoise look for, each with
    /// its culprit. Needs no rights but to name culprits.
    ///
    /// Examples:
    ///   punctual measure noise --cpus 3 --duration 1m
    ///   punctual measure noise --policy fifo:90 --load memory --load-cpus 0-2
    #[command(verbatim_doc_comment)]
    Noise(Box<Noise>),
    /// How long a UDP datagram is under way to another machine and back, and where the time goes: `punctual echo` answers
    /// there.
    ///
    /// Sends on a fixed schedule whatever becomes of answers, and counts from when each was to be sent.
    ///
    /// Examples:
    ///   punctual measure udp 192.0.2.1 --duration 1m
    ///   punctual measure udp board-b:7125 --period 250us --stamps all --cpu 3
    ///   punctual measure udp --self --load cpu
    #[command(verbatim_doc_comment)]
    Udp(Box<Udp>),
    /// Send an AVB stream (IEEE 1722) frame by frame, each in its slot, or receive it: late packets, missed slots, gaps,
    /// losses and where they happened.
    ///
    /// The talker wakes before each slot as --wakeup-offset says, and spins until it. Nothing is sent on an interface that is
    /// not named.
    ///
    /// Examples:
    ///   punctual measure stream talk eth0 --cpu 3 --wakeup-offset 8us --duration 1h
    ///   punctual measure stream talk eth0 --class B --profile avb-class-b
    ///   punctual measure stream listen eth0 --spin
    ///   punctual measure stream --self --load cpu
    #[command(verbatim_doc_comment)]
    Stream(Box<Stream>),
    /// How small a buffer this machine can play a guitar amplifier through: when each period of audio was done, which came too
    /// late for a sound card (xruns), and who was to blame for each.
    ///
    /// The clock stands in for the card. A spike is a period that took more than half of its time.
    ///
    /// Examples:
    ///   punctual measure audio --frames 64 --duration 1m
    ///   punctual measure audio --frames 32 --model deluxe.nam --load switch
    ///   punctual measure audio --profile audio-48k-64 --shield 3
    ///   punctual measure audio --find-buffer --duration 30s --load cpu --load memory
    #[command(verbatim_doc_comment)]
    Audio(Box<Audio>),
    /// How late the threads of your own program wake, who preempts them, and which deadlines they miss.
    ///
    /// Comes from the scheduler's trace points, which takes root. Nothing is changed in the program.
    ///
    /// Examples:
    ///   punctual measure process 4711 --duration 1m
    ///   punctual measure process "$(pidof jackd)" --thread 'alsa*' --period 1333us
    ///   punctual measure process --period servo=1ms -- ./machine --axes 3
    #[command(verbatim_doc_comment)]
    Process(Box<Process>),
}

/// Options of `measure timer`.
#[derive(Debug, Args)]
pub struct Timer {
    /// CPUs to measure, as the kernel writes a list (0,2-3); every online CPU if not given, isolated ones included.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Time between two deadlines [default: that of the profile, or 1ms].
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub period: Option<u64>,
    /// Measure so many wake-ups a CPU.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "endless"], value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD or other.
    #[arg(long, default_value_t = TimerProbe::default().policy(None))]
    pub policy: Policy,
    /// Shift between the grids of neighbouring CPUs.
    #[arg(long, value_name = "TIME", value_parser = duration_or_zero, default_value = "0ns")]
    pub offset: u64,
    /// Where things run.
    #[command(flatten)]
    pub placement: Placement,
    /// What each measurement of wake-ups has.
    #[command(flatten)]
    pub wake_ups: WakeUps,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}
