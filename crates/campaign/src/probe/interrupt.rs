//! Interrupts from outside: the time from an interrupt of a device to the wake-up of a thread.

mod devices;
mod here;
mod irq;
mod list;
mod oob;
mod source;
mod traced;

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use judge::{JudgeAddress, Lines, RemoteJudge, Session, SessionSettings, settings::Level};
use machine::{CpuList, Handlers, IrqSettings, Root, SamplesHold, SourceIrqError, SourceIrqHold, usable_cpus};
use probes::{
    interrupt::{
        Ack, AnsweredLine, Answering, ControlInput, ControlOutput, Counter, Drive, Driver, DriverSettings, Edges, Hpet,
        InBandAnswers, InBandEdges, Input, Interrupt, Line, LineEdges, OutOfBandAnswers, OutOfBandEdges, Pin, Pulses,
        Samples, Settings, Strobe, Traced,
    },
    probe_threads::ProbeThreads,
    timer::Core,
};
use sys::{
    clock::Clock,
    evl,
    interrupt::{gpio::Active, hpet::Timer, pps},
    sched::Policy,
};

use self::source::LineUse;
pub use self::{
    devices::{CounterEvent, IioDevice, PtpInput},
    list::{Offer, offers},
    source::{GpioLine, SerialLoop, SourceError, SourceName},
    traced::UioDevice,
};
use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing, with_shield,
    },
    timer::POLICY,
};

/// Frequencies of the HPET, Hz. A higher one leaves no time for the interrupt and the wake-up.
const HPET_HZ: RangeInclusive<u64> = 1..=100_000;
/// Shortest period of edges that this machine makes, ns: each takes two wake-ups and two system calls.
const DRIVEN_MIN_NS: u64 = 20_000;
/// Default period of the pulses of a PPS source and of the updates of a real-time clock, ns.
const PULSE_NS: u64 = 1_000_000_000;

/// Options of the interrupt probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptProbe {
    /// The source.
    pub source: SourceName,
    /// The output line, wired to the source, on which this machine makes the edges; `None` if something else does.
    pub drive: Option<GpioLine>,
    /// The output line on which the thread answers, and the judge that asks on the input line and measures the answers.
    pub judged: Option<Judged>,
    /// Time between two interrupts, ns; `None` for a second with PPS and real-time clocks, and a millisecond otherwise. The
    /// period of an input line that something else drives is only that of a use.
    pub period_ns: Option<u64>,
    /// CPU of the thread that waits; `None` before it is placed.
    pub cpu: Option<u32>,
    /// CPU of the interrupts of the source; `None` leaves them where they are.
    pub irq_cpu: Option<u32>,
}

/// An outside judge, and the output line that answers its questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The output line.
    pub answer: GpioLine,
    /// The judge.
    pub judge: Judge,
}

/// An outside judge, at this machine or at another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judge {
    /// This machine reads its results.
    Here(JudgeAddress),
    /// The other end of a measurement reads its results.
    Elsewhere(RemoteJudge),
}

impl Judge {
    /// The active level of both lines.
    fn level(&self) -> Level {
        match self {
            Self::Here(address) => address.level(),
            Self::Elsewhere(judge) => judge.level(),
        }
    }
}

impl Default for InterruptProbe {
    fn default() -> Self {
        Self { source: SourceName::Hpet, drive: None, judged: None, period_ns: None, cpu: None, irq_cpu: None }
    }
}

impl InterruptProbe {
    /// The CPU for the thread that makes the edges: another one than that of the waiting thread, if there is one.
    fn driver_cpu(&self, root: &Root) -> Option<u32> {
        let own: CpuList = self.cpu.into_iter().collect();
        let others = usable_cpus(root, None).ok()?.difference(&own);
        others.first().or(self.cpu)
    }

    /// The thread that makes edges gives way to the one that waits for them, if both are on one CPU.
    fn driver_policy(policy: Policy) -> Policy {
        match policy.priority() {
            Some(priority) => Policy::Fifo(priority.saturating_sub(1).max(1)),
            None => policy,
        }
    }

    /// Opens the source, and creates the thread that makes the edges.
    fn open(&self, context: &PhaseContext<'_>) -> Result<Interrupt, PrepareError> {
        let name = self.source.to_string();
        let period_ns = context.period_ns;
        let settings = |if_silent: &str| Settings { name: name.clone(), if_silent: if_silent.to_owned(), period_ns };
        match &self.source {
            SourceName::Hpet => {
                let timer = Timer::open(Path::new(source::HPET)).map_err(|error| source::hpet_error(&error))?;
                let hz = self.frequency_hz(context.period_ns)?;
                timer.set_frequency(hz).map_err(|error| source::hpet_error(&error))?;
                // Its interrupt exists from then on, and can be set before the measurement.
                timer.start().map_err(|error| source::hpet_error(&error))?;
                Ok(Interrupt::prepare(Hpet::new(timer, hz), settings("see `dmesg | grep -i hpet`"), None))
            }
            SourceName::Pps(number) => {
                let path = PathBuf::from(format!("/dev/{number}"));
                let opened = pps::Source::open(&path).map_err(|error| source::pps_error(&path, &error))?;
                let device = source::pps_device(context.root, number);
                let silent = "connect its signal, and check it with `ppstest`; choose a longer --duration";
                let probe = Interrupt::prepare(Pulses::new(opened, device), settings(silent), None);
                // The wait for a pulse of a removed source ends only with its time limit.
                Ok(probe.while_exists(context.root.path(&format!("sys/class/pps/{number}"))))
            }
            SourceName::Rtc(clock) => {
                let device = traced::open_clock(context.root, clock)?;
                let name = devices::with_name(context.root, clock, &format!("sys/class/rtc/{clock}/name"));
                let handlers = traced::handlers(context.root, &self.source)?;
                let silent =
                    "choose a --duration of 3s or more; some clocks make no interrupts: see `dmesg | grep -i rtc`";
                let probe = Interrupt::prepare(Traced::new(device, name, handlers), settings(silent), None);
                Ok(probe.while_exists(context.root.path(&format!("sys/class/rtc/{clock}"))))
            }
            SourceName::Uio(user) => {
                let (device, name) = user.open(context.root)?;
                let handlers = traced::handlers(context.root, &self.source)?;
                let silent = "the device must make interrupts during the run, and its program must serve it; some drivers \
                              need `uio:N` without `/listen`";
                let probe = Interrupt::prepare(Traced::new(device, name, handlers), settings(silent), None);
                Ok(probe.while_exists(context.root.path(&format!("sys/class/uio/{}", user.device))))
            }
            SourceName::Evdev(number) => {
                let (device, name) = devices::open_input(context.root, number)?;
                let silent = "use the device during the run, and check it with `evtest`";
                Ok(Interrupt::prepare(Input::new(device, name), settings(silent), None))
            }
            SourceName::Counter(event) => {
                let (device, name, count) = event.open(context.root)?;
                let silent = "check the signal, and choose an event and a channel that the driver reports";
                Ok(Interrupt::prepare(Counter::new(device, name, count), settings(silent), None))
            }
            SourceName::Ptp(input) => {
                let (stamps, device) = input.open(context.root)?;
                let silent =
                    "check the signal; before Linux 6.7, another program that reads stamps, such as ts2phc, takes them";
                Ok(Interrupt::prepare(Pin::new(stamps, device), settings(silent), None))
            }
            SourceName::Iio(device) => {
                let (device, name) = device.open(context.root)?;
                let silent = "check its trigger, which must fire during the run; a hrtimer trigger needs a \
                              sampling_frequency";
                Ok(Interrupt::prepare(Samples::new(device, name), settings(silent), None))
            }
            SourceName::Parport(name) => {
                let port = Arc::new(source::open_parport(context.root, name)?);
                let (driver, edges) = self.driver(context, Strobe(Arc::clone(&port)))?;
                let device = format!("ACK (pin 10) of {name}");
                let silent = "connect pin 1 (STROBE) and pin 10 (ACK) of the port with a wire";
                Ok(Interrupt::prepare(Ack::new(port, device, edges), settings(silent), Some(driver)))
            }
            SourceName::Serial(wired) => {
                let port = Arc::new(wired.open(context.root)?);
                let (driver, edges) = self.driver(context, ControlOutput(Arc::clone(&port)))?;
                let [output, input] = wired.lines();
                let source = ControlInput::new(port, input, output, edges);
                Ok(Interrupt::prepare(source, settings(&wired.if_silent()), Some(driver)))
            }
            SourceName::Gpio(line) => {
                if let Some(judged) = &self.judged {
                    return self.open_judged(line, judged, context);
                }
                let (chip, offset) = line.open(context.root)?;
                let device = line.describe(&chip, offset);
                match context.core.of_named_threads() {
                    Core::Linux => {
                        let input = chip
                            .watch(offset, Active::High)
                            .map_err(|error| line.error(&chip, offset, LineUse::Edges(Active::High), &error))?;
                        self.open_line(InBandEdges::new(input), device, context)
                    }
                    Core::Evl => {
                        oob::check_kernel(context.root)?;
                        let input = oob::take(line, (&chip, offset), Active::High, evl::gpio::Input::open)?;
                        oob::check(self.cpu, &input, None)?;
                        let probe = self.open_line(OutOfBandEdges::new(input), device, context)?;
                        Ok(probe.while_exists(line.device(context.root)))
                    }
                }
            }
        }
    }

    /// Prepares a line without a judge, whose edges an output line of this machine may make.
    fn open_line(
        &self,
        edges: impl LineEdges + 'static,
        device: String,
        context: &PhaseContext<'_>,
    ) -> Result<Interrupt, PrepareError> {
        let name = self.source.to_string();
        let Some(output) = &self.drive else {
            let if_silent =
                "check the signal with `gpiomon`, or let punctual make the edges with --drive LINE".to_owned();
            return Ok(Interrupt::prepare(
                Line::new(edges, device, None),
                Settings { name, if_silent, period_ns: context.period_ns },
                None,
            ));
        };
        let (chip, offset) = output.open(context.root)?;
        let driven =
            chip.drive(offset, Active::High).map_err(|error| output.error(&chip, offset, LineUse::Output, &error))?;
        let (driver, times) = self.driver(context, driven)?;
        let line = Line::new(edges, device, Some((times, output.describe(&chip, offset))));
        let if_silent = format!("connect the lines {output} and {name} with a wire");
        Ok(Interrupt::prepare(line, Settings { name, if_silent, period_ns: context.period_ns }, Some(driver)))
    }

    /// Creates the thread that makes edges on an output. Returns also the times before each edge.
    fn driver(&self, context: &PhaseContext<'_>, output: impl Drive) -> Result<(Driver, Edges), PrepareError> {
        let settings = DriverSettings {
            cpu: self.driver_cpu(context.root),
            policy: Self::driver_policy(context.policy),
            period_ns: context.period_ns,
        };
        let create = || Driver::create(output, settings);
        Ok(with_shield(context.shield, settings.cpu, create)??)
    }

    /// Makes the settings that the source needs for the whole run; `None` if it needs none.
    ///
    /// # Errors
    /// The source is in use, or cannot be set; the CPU for its interrupts is not online.
    pub(crate) fn hold(&self, root: &Root) -> Result<Option<SamplesHold>, PrepareError> {
        self.check_irq_cpu(root)?;
        match &self.source {
            SourceName::Iio(device) => Ok(Some(device.hold(root)?)),
            _ => Ok(None),
        }
    }

    /// Changes the settings of the interrupts of the source, which is open; `before` was read before it was opened.
    ///
    /// # Errors
    /// The interrupts are not known, or the kernel refuses the change.
    pub(crate) fn set_interrupts(
        &self,
        root: &Root,
        before: &Handlers,
        settings: IrqSettings,
    ) -> Result<SourceIrqHold, SourceIrqError> {
        let interrupts = self.source.interrupts(root, before);
        SourceIrqHold::take(root, &self.source.to_string(), &interrupts, settings)
    }

    /// Opens the lines, then the judge: it asks with the idle level of the input that the line expects.
    fn open_judged(
        &self,
        line: &GpioLine,
        judged: &Judged,
        context: &PhaseContext<'_>,
    ) -> Result<Interrupt, PrepareError> {
        let Judged { answer, judge } = judged;
        let active = match judge.level() {
            Level::High => Active::High,
            Level::Low => Active::Low,
        };
        let (chip, offset) = line.open(context.root)?;
        let (answer_chip, answer_offset) = answer.open(context.root)?;
        let lines =
            Lines { question: line.describe(&chip, offset), answer: answer.describe(&answer_chip, answer_offset) };
        match context.core.of_named_threads() {
            Core::Linux => {
                let question = chip
                    .watch(offset, active)
                    .map_err(|error| line.error(&chip, offset, LineUse::Edges(active), &error))?;
                let output = answer_chip
                    .drive(answer_offset, active)
                    .map_err(|error| answer.error(&answer_chip, answer_offset, LineUse::Output, &error))?;
                self.with_judge(line, InBandAnswers::new(question, output), lines, judge, context)
            }
            Core::Evl => {
                oob::check_kernel(context.root)?;
                let question = oob::take(line, (&chip, offset), active, evl::gpio::Input::open)?;
                let output = oob::take(answer, (&answer_chip, answer_offset), active, evl::gpio::Output::open)?;
                oob::check(self.cpu, &question, Some(&output))?;
                let probe = self.with_judge(line, OutOfBandAnswers::new(question, output), lines, judge, context)?;
                Ok(probe.while_exists(line.device(context.root)))
            }
        }
    }

    /// Prepares a source that answers a judge, and opens the judge.
    fn with_judge(
        &self,
        line: &GpioLine,
        answers: impl Answering + 'static,
        lines: Lines,
        judge: &Judge,
        context: &PhaseContext<'_>,
    ) -> Result<Interrupt, PrepareError> {
        let name = self.source.to_string();
        let if_silent = format!("connect the question pin of the judge with the line {line}, and the grounds of both");
        let device = lines.question.clone();
        let (switch, session) = match judge {
            Judge::Here(address) => {
                let (address, period_ns) = (address.clone(), context.period_ns);
                let session = Session::open(SessionSettings { address, period_ns, cpu: self.cpu, lines })?;
                (session.switch(), Some(session))
            }
            Judge::Elsewhere(judge) => (judge.switch(), None),
        };
        let source = AnsweredLine::new(answers, device, switch);
        Ok(Interrupt::with_judge(source, Settings { name, if_silent, period_ns: context.period_ns }, session))
    }

    fn frequency_hz(&self, period_ns: u64) -> Result<u32, PlanError> {
        let hz = 1_000_000_000 / period_ns.max(1);
        let fits = HPET_HZ.contains(&hz) && hz * period_ns == 1_000_000_000;
        u32::try_from(hz).ok().filter(|_| fits).ok_or(PlanError::HpetPeriod(period_ns))
    }
}

impl Definition for InterruptProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: record::INTERRUPT,
            network: Network::None,
            has_late_wake_ups: true,
            measures_trace_cost: false,
            guard_remedies: [
                "use a longer --period, or a lower priority with --policy",
                "use a longer --period, or a source with fewer interrupts",
            ],
            awaits_device: true,
            pacer_failed: Some(match self.judged {
                None => ["the source of the interrupts failed, or is gone", "see `dmesg`"],
                Some(_) => [
                    "the judge or a GPIO line failed, or is gone",
                    "check the connection with the judge, and see `dmesg`",
                ],
            }),
            evl: match self.source {
                SourceName::Gpio(_) => Ok(()),
                SourceName::Hpet
                | SourceName::Pps(_)
                | SourceName::Evdev(_)
                | SourceName::Rtc(_)
                | SourceName::Uio(_)
                | SourceName::Counter(_)
                | SourceName::Ptp(_)
                | SourceName::Iio(_)
                | SourceName::Parport(_)
                | SourceName::Serial(_) => Err(PlanError::EvlSource),
            },
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(POLICY)
    }

    fn period_ns(&self) -> u64 {
        let default_ns =
            if matches!(self.source, SourceName::Pps(_) | SourceName::Rtc(_)) { PULSE_NS } else { 1_000_000 };
        self.period_ns.unwrap_or(default_ns)
    }

    fn timing(&self, period_ns: u64) -> Timing {
        Timing::of_sleeper(period_ns)
    }

    fn placement(&self) -> PlacementRule {
        PlacementRule::one_thread(record::INTERRUPT)
    }

    fn place(&mut self, cpus: Vec<u32>, _machine: &PlacementContext<'_>) -> Vec<u32> {
        self.cpu = cpus.first().copied();
        cpus
    }

    fn threads(&self, policy: Policy) -> Vec<ThreadPlan> {
        let thread = |cpu| ThreadPlan { role: record::INTERRUPT.to_owned(), cpu, policy, period_ns: self.period_ns() };
        self.cpu.map(thread).into_iter().collect()
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(None)
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.drive.is_some() && !matches!(self.source, SourceName::Gpio(_)) {
            return Err(PlanError::DriveWithoutLine);
        }
        let outputs = [("drive", self.drive.as_ref()), ("answer", self.judged.as_ref().map(|judged| &judged.answer))];
        if let SourceName::Gpio(input) = &self.source
            && let Some((option, _)) = outputs.iter().find(|(_, output)| *output == Some(input))
        {
            return Err(PlanError::SameLine(option));
        }
        let is_driven = self.drive.is_some() || matches!(self.source, SourceName::Parport(_) | SourceName::Serial(_));
        if let Some(judged) = &self.judged {
            let is_line = matches!(self.source, SourceName::Gpio(_));
            if !is_line || self.drive.is_some() {
                return Err(PlanError::JudgeWithoutLine);
            }
            if let Judge::Here(address) = &judged.judge
                && !address.has_period(self.period_ns())
            {
                return Err(PlanError::JudgePeriod { period_ns: self.period_ns(), periods: address.periods() });
            }
        }
        match self.source {
            SourceName::Hpet => self.frequency_hz(self.period_ns()).map(drop),
            SourceName::Gpio(_) | SourceName::Parport(_) | SourceName::Serial(_)
                if is_driven && self.period_ns() < DRIVEN_MIN_NS =>
            {
                Err(PlanError::DrivenPeriod(self.period_ns()))
            }
            SourceName::Gpio(_)
            | SourceName::Pps(_)
            | SourceName::Evdev(_)
            | SourceName::Rtc(_)
            | SourceName::Uio(_)
            | SourceName::Counter(_)
            | SourceName::Ptp(_)
            | SourceName::Iio(_)
            | SourceName::Parport(_)
            | SourceName::Serial(_) => Ok(()),
        }
    }

    fn check_run(&self, run: &RunShape<'_>) -> Result<(), PlanError> {
        if run.clock == Clock::Monotonic { Ok(()) } else { Err(PlanError::InterruptClock) }
    }

    fn prepare(&self, context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(Some(Box::new(self.open(context)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_fit_their_source() {
        let hpet = |period_ns| InterruptProbe { period_ns: Some(period_ns), ..InterruptProbe::default() }.check();
        assert_eq!(hpet(1_000_000), Ok(()));
        assert_eq!(hpet(3_000_000), Err(PlanError::HpetPeriod(3_000_000)), "333.3 Hz");
        assert_eq!(hpet(5_000), Err(PlanError::HpetPeriod(5_000)));
        let driven = |source: &str, period_ns| InterruptProbe {
            source: source.parse().unwrap(),
            drive: "0/1".parse().ok(),
            period_ns: Some(period_ns),
            ..InterruptProbe::default()
        };
        assert_eq!(driven("gpio:0/2", 20_000).check(), Ok(()));
        assert_eq!(driven("gpio:0/2", 10_000).check(), Err(PlanError::DrivenPeriod(10_000)));
        assert_eq!(
            InterruptProbe { drive: None, ..driven("parport:0", 10_000) }.check(),
            Err(PlanError::DrivenPeriod(10_000))
        );
        assert_eq!(driven("hpet", 1_000_000).check(), Err(PlanError::DriveWithoutLine));
        assert_eq!(driven("gpio:gpiochip0/1", 1_000_000).check(), Err(PlanError::SameLine("drive")));
        let judged = |source: &str, judge: &str, period_ns| {
            let judged = Judged { answer: "0/1".parse().unwrap(), judge: Judge::Here(judge.parse().unwrap()) };
            let source = source.parse().unwrap();
            InterruptProbe { source, judged: Some(judged), period_ns: Some(period_ns), ..InterruptProbe::default() }
                .check()
        };
        assert_eq!(judged("gpio:0/2", "/dev/ttyACM0", 1_000_000), Ok(()));
        assert_eq!(judged("gpio:0/2", "board", 1_000_000), Ok(()));
        assert_eq!(judged("hpet", "board", 1_000_000), Err(PlanError::JudgeWithoutLine));
        assert_eq!(judged("gpio:0/1", "board", 1_000_000), Err(PlanError::SameLine("answer")));
        let error = |judge, period_ns| judged("gpio:0/2", judge, period_ns).unwrap_err().to_string();
        assert_eq!(
            error("/dev/ttyACM0", 40_000),
            "the judge asks every 50us to 10s, a multiple of 8 ns: choose such a period (got 40us)"
        );
        assert!(error("board", 2_000_000_000).contains("1us to 1s"));
        let pulse = InterruptProbe { source: "pps:pps0".parse().unwrap(), ..InterruptProbe::default() };
        assert_eq!(pulse.period_ns(), 1_000_000_000);
    }

    #[test]
    fn the_maker_of_edges_gives_way() {
        assert_eq!(InterruptProbe::driver_policy(Policy::Fifo(90)), Policy::Fifo(89));
        assert_eq!(InterruptProbe::driver_policy(Policy::Fifo(1)), Policy::Fifo(1));
        assert_eq!(InterruptProbe::driver_policy(Policy::Other), Policy::Other);
    }
}
