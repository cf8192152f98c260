//! The answering end of round trips, told as a run of its own for the asking end.

use std::{net::SocketAddr, path::Path};

use machine::{CpuList, Root, usable_cpus};
use probes::udp::{Echo, EchoSettings, UdpError};
use record::{Answered, Granted, Record, Scenario};
use sys::{memory, udp::DatagramSocket};

use crate::{
    RunError,
    run::{begin, make_room},
    validity,
};

/// An answering end at work.
#[derive(Debug)]
pub struct Answering {
    echo: Echo,
    address: SocketAddr,
    granted: Granted,
    record: Record,
}

impl Answering {
    /// Answers on `socket` from now on. What the kernel refuses makes its record invalid.
    ///
    /// # Errors
    /// When there is no such CPU, or no thread can be made.
    pub fn start(socket: DatagramSocket, settings: EchoSettings, root: &Root) -> Result<Self, RunError> {
        let cpus: Option<CpuList> = settings.cpu.map(|cpu| CpuList::from_iter([cpu]));
        usable_cpus(root, cpus.as_ref())?;
        let mut record = begin(&[], Path::new("punctual"), Scenario::default(), root);
        let address = socket.local_address().map_err(UdpError::Spawn)?;
        let echo = Echo::start(socket, settings).map_err(UdpError::Spawn)?;
        cpus.iter().for_each(|cpus| make_room(root, cpus));
        let locked = memory::lock_what_is_there().is_ok() && validity::memory_is_locked(root);
        echo.set_memory_locked(locked);
        validity::judge_grants(&mut record, &[echo.member()], locked);
        let grant = echo.grant();
        let granted = Granted {
            policy: grant.policy.to_string(),
            cpus: grant.cpus.iter().copied().collect::<CpuList>().to_string(),
            memory_locked: locked,
            timer_slack_ns: if grant.policy.is_realtime() { 0 } else { grant.timer_slack_ns },
            ..Granted::default()
        };
        Ok(Self { echo, address, granted, record })
    }

    /// Where it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: its machine, with what was refused, and what it counted.
    #[must_use]
    pub fn finish(mut self) -> (Record, Answered) {
        let counts = self.echo.stop();
        let answered = Answered {
            address: self.address.to_string(),
            answered: counts.answered - counts.greetings,
            greetings: counts.greetings,
            strangers: counts.strangers,
            failed: counts.failed,
            rests: counts.rests,
            granted: self.granted,
            ..Answered::default()
        };
        (self.record, answered)
    }
}
