//! The answering end of round trips, told as a run of its own for the asking end.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Instant,
};

use loads::{LoadSpec, Running};
use machine::{CpuList, Root, usable_cpus};
use probes::udp::{Echo, EchoSettings, UdpError};
use record::{Answered, Granted, Phase, Record, Scenario};
use sys::{memory, udp::DatagramSocket};

use crate::{
    changes::{Change, Changes},
    error::RunError,
    nic,
    plan::NicPlan,
    probe::on_its_side,
    run::{begin, hold_awake, make_room},
    shielded::{self, start_loads},
    validity,
};

/// What an answering end is to be, and what is to be around it for that time.
#[derive(Debug, Clone)]
pub struct AnswerPlan {
    /// The thread that answers.
    pub settings: EchoSettings,
    /// What runs beside it.
    pub loads: Vec<LoadSpec>,
    /// CPUs that loads may use where they do not say so themselves; `None` for its own, or those beside the shield.
    pub load_cpus: Option<CpuList>,
    /// CPUs that all else is moved off.
    pub shield: Option<CpuList>,
    /// Whether to hold its CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// How the interface is set that leads to the asking end.
    pub nic: NicPlan,
    /// The asking end.
    pub asking: IpAddr,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
}

/// An answering end at work. Dropped, it puts everything back.
#[derive(Debug)]
pub struct Answering {
    echo: Echo,
    address: SocketAddr,
    granted: Granted,
    record: Record,
    began: Instant,
    // Ended in this order.
    loads: Vec<Running>,
    changes: Changes,
}

impl Answering {
    /// Answers on `socket` from now on. What the kernel refuses makes its record invalid.
    ///
    /// # Errors
    /// When there is no such CPU or interface, CPUs cannot be shielded, or no load or thread can be made.
    pub fn start(socket: DatagramSocket, plan: &AnswerPlan, root: &Root) -> Result<Self, RunError> {
        let settings = plan.settings;
        let nic_wanted = nic::wanted_towards(&plan.nic, plan.asking)?;
        let pinned = settings.cpu.map(|cpu| CpuList::from_iter([cpu]));
        let cpus = usable_cpus(root, pinned.as_ref())?;
        let load_cpus = plan.load_cpus(&cpus, root)?;
        let mut record = begin(&[], &plan.executable, Scenario::default(), root);
        let mut changes = Changes::default();
        if let Some(shield) = shielded::take(&mut record, plan.shield.as_ref(), root)? {
            changes.push(Change::Shield(shield));
        }
        hold_awake(&mut record, &mut changes, plan.hold_cpu_awake, root, &cpus);
        nic::hold(&mut record, &mut changes, nic_wanted, root);
        let shield = changes.in_use().shield;
        let loads = start_loads(&plan.executable, &plan.loads, &load_cpus, shield)?;
        let asked_loads = plan.loads.iter().map(ToString::to_string).collect();
        record.phases = vec![Phase { name: "answer".to_owned(), asked_loads, ..Phase::default() }];
        let address = socket.local_address().map_err(UdpError::Spawn)?;
        let start = || Echo::start(socket, settings).map_err(UdpError::Spawn);
        let echo = on_its_side(shield, settings.cpu, start)??;
        if pinned.is_some() {
            make_room(root, &cpus);
        }
        let locked = memory::lock_current_memory().is_ok() && validity::memory_is_locked(root);
        echo.set_memory_locked(locked);
        validity::judge_grants(&mut record, &[echo.thread_info()], locked);
        let grant = echo.grant();
        let granted = Granted {
            policy: grant.policy.to_string(),
            cpus: grant.cpus.iter().copied().collect::<CpuList>().to_string(),
            memory_locked: locked,
            timer_slack_ns: if grant.policy.is_realtime() { 0 } else { grant.timer_slack_ns },
            cpu_awake: changes.how_awake().map(str::to_owned),
            ..Granted::default()
        };
        Ok(Self { echo, address, granted, record, began: Instant::now(), loads, changes })
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is known of it by now: its machine, with what was refused.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Ends it, and puts everything back: its machine, with what was refused and what ran beside it, and what it counted.
    #[must_use]
    pub fn finish(mut self) -> (Record, Answered) {
        let counts = self.echo.stop();
        let mut record = self.record;
        for phase in &mut record.phases {
            phase.duration_ns = self.began.elapsed().as_nanos() as u64;
            phase.loads = self.loads.drain(..).flat_map(Running::stop).collect();
        }
        self.changes.undo(&mut record);
        let answered = Answered {
            address: self.address.to_string(),
            answered: counts.answered - counts.greetings,
            greetings: counts.greetings,
            strangers: counts.strangers,
            failed: counts.failed,
            rests: counts.pauses,
            granted: self.granted,
            ..Answered::default()
        };
        (record, answered)
    }
}

impl AnswerPlan {
    /// Where loads go that do not say so themselves: `cpus` are those of the answering thread.
    fn load_cpus(&self, cpus: &CpuList, root: &Root) -> Result<CpuList, RunError> {
        Ok(match (&self.load_cpus, &self.shield) {
            (Some(asked), _) => usable_cpus(root, Some(asked))?,
            // Without any, the shield itself says what is wrong.
            (None, Some(shield)) => usable_cpus(root, None)?.difference(shield),
            (None, None) => cpus.clone(),
        })
    }
}
