//! Measures interrupts at the far end.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use campaign::{
    Cores, Length, NicPlan, PhasePlan, Plan, Probe, SELF_EXE,
    probe::{
        Definition, InterruptProbe, choose_cpu,
        interrupt::{Judge, Judged},
    },
};
use judge::{RemoteJudge, settings::Level};
use machine::{CpuList, Root};
use record::{FarAsked, Reason, Record};
use sys::signal;

use super::common::{Failure, TICK};
use crate::{
    channel::Channel,
    protocol::{InterruptTask, Results, ToFar, ToNear},
};

/// Time between two looks at the switch of the judge.
const LOOK: Duration = Duration::from_millis(20);

/// Measures interrupts for the planned time. An outside judge at the near end begins when the thread waits, and ends
/// before the thread does.
pub fn interrupt(channel: &mut Channel<ToFar>, task: &InterruptTask, asked: &FarAsked) -> Result<Results, Failure> {
    let root = Root::system();
    let judge =
        task.answer.as_ref().map(|answer| RemoteJudge::new(if answer.is_falling { Level::Low } else { Level::High }));
    let plan = plan(task, asked, &root, judge.clone())?;
    let (refused, has_ended) = (&OnceLock::new(), &AtomicBool::new(false));
    let record = thread::scope(|scope| {
        let relay = scope.spawn(move || relay(channel, judge.as_ref(), refused, has_ended));
        let watch = &mut |record: &Record, _: &campaign::Progress| {
            refused.get_or_init(|| record.validity.reasons.clone());
        };
        let record = campaign::run(&plan, &root, watch);
        if let Ok(record) = &record {
            refused.get_or_init(|| record.validity.reasons.clone());
        }
        has_ended.store(true, Relaxed);
        relay.join().map(|()| record)
    });
    let record = record.map_err(|_| "the thread that receives messages failed: report this as a bug")??;
    Ok(Results { record, answered: None, clocks: None })
}

/// Relays between the run and the near end until the run has ended.
fn relay(
    channel: &mut Channel<ToFar>,
    judge: Option<&RemoteJudge>,
    refused: &OnceLock<Vec<Reason>>,
    has_ended: &AtomicBool,
) {
    let (mut is_ready, mut shall_end) = (false, false);
    loop {
        let run_has_ended = has_ended.load(Relaxed);
        let may_begin = judge.is_none_or(|judge| judge.switch().has_begun()) || run_has_ended;
        if let Some(refused) = refused.get().filter(|_| may_begin && !is_ready) {
            channel.send(&ToNear::Ready { address: None, refused: refused.clone() });
            is_ready = true;
        }
        if judge.is_some_and(|judge| judge.switch().shall_end()) && !shall_end {
            channel.send(&ToNear::JudgeShallEnd);
            shall_end = true;
        }
        match channel.receive(LOOK) {
            Ok(Some(ToFar::End { .. })) => signal::request_termination_by_key(),
            Ok(Some(ToFar::JudgeIsOver)) => {
                if let Some(judge) = judge {
                    judge.set_over();
                }
            }
            Ok(_) => {}
            // The run ends, because the loss requested its end. Nobody asks any more.
            Err(_) => {
                if let Some(judge) = judge {
                    judge.set_over();
                }
                return;
            }
        }
        if run_has_ended {
            return;
        }
    }
}

fn plan(task: &InterruptTask, asked: &FarAsked, root: &Root, judge: Option<RemoteJudge>) -> Result<Plan, Failure> {
    let list = |text: &Option<String>| text.as_deref().map(str::parse::<CpuList>).transpose();
    let shield = list(&asked.shield)?;
    let cpu = choose_cpu(root, asked.cpu, shield.as_ref(), Cores::Linux)?;
    let answer = task.answer.as_ref().map(|answer| answer.line.parse()).transpose()?;
    let probe = InterruptProbe {
        source: task.source.parse()?,
        drive: task.drive.as_deref().map(str::parse).transpose()?,
        judged: answer.zip(judge).map(|(answer, judge)| Judged { answer, judge: Judge::Elsewhere(judge) }),
        period_ns: task.period_ns,
        cpu: Some(cpu),
        irq_cpu: task.irq_cpu,
    };
    let policy = asked.policy.parse()?;
    let phase = PhasePlan {
        name: if asked.loads.is_empty() { "rest" } else { "load" }.to_owned(),
        period_ns: probe.period_ns(),
        length: Length::Duration(task.duration_ns),
        loads: asked.loads.iter().map(|load| load.parse()).collect::<Result<_, _>>()?,
        threads: probe.threads(policy),
    };
    Ok(Plan {
        cpus: Some(CpuList::from_iter([cpu])),
        load_cpus: list(&asked.load_cpus)?,
        policy,
        threshold_ns: task.threshold_ns,
        shield,
        hold_cpu_awake: asked.hold_cpu_awake,
        nic: NicPlan { irq_priority: asked.irq_priority, ..NicPlan::default() },
        command: task.command.clone(),
        executable: PathBuf::from(SELF_EXE),
        watch_every: Some(TICK),
        ..Plan::new(Probe::Interrupt(Box::new(probe)), vec![phase])
    })
}
