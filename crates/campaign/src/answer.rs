//! The answering end of round trips. It makes a record of its own, which the measuring end merges into its record.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Instant,
};

use loads::{LoadSpec, Running};
use machine::{CpuList, Root, Shield, nic::outgoing_interface, usable_cpus};
use probes::{
    guard::Heartbeat,
    round_trip::{Echo, EchoSettings, Port, Requests, RoundTripError},
};
use record::{Answered, Caveat, Granted, Phase, Record, Scenario};
use sys::{clock::Clock, memory, udp::DatagramSocket};

use crate::{
    changes::Changes,
    error::RunError,
    nic,
    phase::elapsed_ns,
    plan::NicPlan,
    probe::{round_trip::Xdp, with_shield},
    run::{begin, hold_awake, leave_measured_cpus},
    shielded::{self, start_loads},
    supervisor::Supervisor,
    validity,
};

/// An answering end: its thread, the loads that run at the same time, and the changes on the machine.
#[derive(Debug, Clone)]
pub struct AnswerPlan {
    /// The thread that answers.
    pub settings: EchoSettings,
    /// The loads that run while it answers.
    pub loads: Vec<LoadSpec>,
    /// CPUs for loads that name none; `None` for the CPUs of the answering thread, or those outside the shield.
    pub load_cpus: Option<CpuList>,
    /// CPUs that other work is moved off.
    pub shield: Option<CpuList>,
    /// True to keep its CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// Settings of the interface on the route to the measuring end.
    pub nic: NicPlan,
    /// AF_XDP on that interface; `None` to answer by the socket.
    pub xdp: Option<Xdp>,
    /// Address of the measuring end.
    pub asking: IpAddr,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
}

/// A running answering end. Dropping it stops it and undoes its changes on the machine.
#[derive(Debug)]
pub struct Answering {
    echo: Echo,
    address: SocketAddr,
    /// Copy mode and hook of AF_XDP.
    transport: Option<String>,
    granted: Granted,
    record: Record,
    began: Instant,
    supervisor: Supervisor,
    // Dropped in this order.
    loads: Vec<Running>,
    changes: Changes,
}

impl Answering {
    /// Starts to answer on `socket`, or by AF_XDP for its address. If the kernel refuses a right, the record becomes invalid
    /// and the answering goes on.
    ///
    /// # Errors
    /// A CPU or the interface does not exist, the interface cannot be used with AF_XDP, CPUs cannot be shielded, or a load or
    /// the thread cannot be started.
    pub fn start(socket: DatagramSocket, plan: &AnswerPlan, root: &Root) -> Result<Self, RunError> {
        let settings = plan.settings;
        let nic_wanted = nic::wanted_towards(&plan.nic, plan.asking)?;
        let pinned = settings.cpu.map(|cpu| CpuList::from_iter([cpu]));
        let cpus = usable_cpus(root, pinned.as_ref())?;
        let load_cpus = plan.load_cpus(&cpus, root)?;
        let mut record = begin(&[], &plan.executable, Scenario::default(), root);
        let mut changes =
            Changes { shield: shielded::take(&mut record, plan.shield.as_ref(), None, root)?, ..Changes::default() };
        hold_awake(&mut record, &mut changes, plan.hold_cpu_awake, root, &cpus);
        nic::hold(&mut record, &mut changes, nic_wanted, root);
        let shield = changes.shield.as_ref();
        let loads = start_loads(&plan.executable, &plan.loads, &load_cpus, shield)?;
        let asked_loads = plan.loads.iter().map(ToString::to_string).collect();
        record.phases = vec![Phase { name: "answer".to_owned(), asked_loads, ..Phase::default() }];
        let address = socket.local_address().map_err(RoundTripError::Spawn)?;
        let port = plan.open(socket, address)?;
        let (transport, notes) = port.to_record();
        record.caveats.extend(notes.into_iter().map(|text| Caveat { kind: "xdp".to_owned(), text }));
        let start = || Echo::start(port, Requests::Datagrams, settings).map_err(RoundTripError::Spawn);
        let echo = with_shield(shield, settings.cpu, start)??;
        if pinned.is_some() {
            leave_measured_cpus(root, &cpus);
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
            cpu_awake: changes.how_awake(),
            ..Granted::default()
        };
        let supervisor = Supervisor::start(root, &[echo.thread_info()], Clock::Monotonic)
            .with_loads(&loads)
            .with_shield(changes.shield.as_ref().map(Shield::watch))
            .with_settings(changes.watches())
            .with_heartbeat(Heartbeat::start().map_err(RoundTripError::Spawn)?);
        Ok(Self { echo, address, transport, granted, record, began: Instant::now(), supervisor, loads, changes })
    }

    /// The address that it answers on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The record so far: the machine, and the rights that the kernel refused.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Checks about once a second that the thread and the machine are as at the start. Call it often.
    pub fn check(&mut self) {
        self.supervisor.check_if_due(&self.loads);
    }

    /// Stops answering and undoes all changes. Returns the record, with the loads that ran, and the counts.
    #[must_use]
    pub fn finish(mut self) -> (Record, Answered) {
        self.supervisor.check(&self.loads);
        let counts = self.echo.stop();
        let mut record = self.record;
        validity::add_all(&mut record, self.supervisor.reasons().iter().cloned());
        for phase in &mut record.phases {
            phase.duration_ns = elapsed_ns(self.began);
            phase.loads = self.loads.drain(..).flat_map(Running::stop).collect();
        }
        let loads: Vec<_> = record.phases.iter().flat_map(|phase| phase.loads.clone()).collect();
        validity::judge_loads(&mut record, &loads);
        shielded::judge_interrupts(&mut record, self.changes.shield.as_ref());
        self.changes.undo(&mut record);
        let answered = Answered {
            address: self.address.to_string(),
            transport: self.transport,
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
    /// The port that receives the datagrams for `address`, which is that of the socket.
    fn open(&self, socket: DatagramSocket, address: SocketAddr) -> Result<Port, RunError> {
        let Some(xdp) = self.xdp else { return Ok(Port::Socket(socket)) };
        let interface = outgoing_interface(self.asking)?;
        xdp.open_echo(&interface, address, socket).map_err(|refusal| RunError::Prepare(refusal.into()))
    }

    /// The CPUs for loads that name none; `cpus` are those of the answering thread.
    fn load_cpus(&self, cpus: &CpuList, root: &Root) -> Result<CpuList, RunError> {
        Ok(match (&self.load_cpus, &self.shield) {
            (Some(cpus), _) => usable_cpus(root, Some(cpus))?,
            // If the shield leaves no CPU, taking the shield reports the error.
            (None, Some(shield)) => usable_cpus(root, None)?.difference(shield),
            (None, None) => cpus.clone(),
        })
    }
}
