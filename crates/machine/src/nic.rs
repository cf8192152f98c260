//! A network interface as it is set: what its driver and the kernel tell, and what about it may cost punctuality.
//!
//! | module | tells |
//! |---|---|
//! | `answers` | where the kernel's netlink answers come from: the kernel, or files of a recorded machine |
//! | `counts` | frames that were lost |
//! | `ethtool` | what the driver was told: coalescing, rings, pause, EEE, features, time stamps |
//! | `netdev` | the kernel's polling of the interface (NAPI), and what AF_XDP can do there |
//! | `qdisc` | the queueing disciplines |
//! | `launch` | whether frames are kept until their launch times |
//! | `interrupts` | its interrupts, where they go, and the threads that serve them |
//! | `power` | saving of power at its device |
//! | `findings` | the checks |
//! | `knob` | what can be set, one value each |
//! | `settings` | what is to be set for a run, in words |
//! | `stamping` | whether it can stamp the frames of a measurement |
//! | `hold` | values set for a run and put back |
//! | `priority` | the same for the priority of the threads that serve it |

mod answers;
mod counts;
mod ethtool;
mod findings;
mod hold;
mod interrupts;
mod knob;
mod launch;
mod netdev;
mod power;
mod priority;
mod qdisc;
mod settings;
mod stamping;
mod words;

use record::{Clocks, HardwareClock};
use serde::Serialize;
use sys::link::Link;
use thiserror::Error;

pub use self::{
    answers::{Answers, Told},
    counts::Counts,
    ethtool::{Channels, Coalescing, Eee, Features, Mode, Pause, Preemption, Rings, Stamping},
    findings::findings,
    hold::{NicHold, NicHoldError},
    interrupts::{Interrupt, Thread},
    knob::{Knob, Value},
    launch::{LaunchError, Launching},
    netdev::{Napi, Xdp},
    power::Power,
    priority::{IrqPriorityError, IrqPriorityHold, WayError, way_to},
    qdisc::{Qdisc, Shaper},
    settings::NicSettings,
    stamping::{NoStamps, can_stamp},
};
use crate::{Root, clocks};

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;
/// The kernel's limit on a name, without its NUL.
const LONGEST_NAME: usize = 15;

/// An interface and all that could be learned about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nic {
    /// Its name.
    pub interface: String,
    /// Its number.
    pub index: u32,
    /// The driver, or the kind of an interface that software makes, as `veth`.
    pub driver: Option<String>,
    /// What carries its frames.
    pub hardware: Option<Hardware>,
    /// Its Ethernet address, as `02:00:00:00:00:01`.
    pub mac: Option<String>,
    /// Largest payload of a frame, bytes.
    pub mtu: Option<u32>,
    /// Whether it was set up.
    pub is_up: bool,
    /// Whether it has a carrier.
    pub has_carrier: Option<bool>,
    /// Frames that were lost here since the interface was made.
    pub counts: Option<Counts>,
    /// Speed and duplex.
    pub mode: Told<Mode>,
    /// When the NIC raises an interrupt.
    pub coalescing: Told<Coalescing>,
    /// Sleeping between frames.
    pub eee: Told<Eee>,
    /// Stopping the sender.
    pub pause: Told<Pause>,
    /// Frames that wait between NIC and driver.
    pub rings: Told<Rings>,
    /// Queues.
    pub channels: Told<Channels>,
    /// Offloads.
    pub features: Told<Features>,
    /// Time stamps that it can take.
    pub stamping: Told<Stamping>,
    /// Frame preemption.
    pub preemption: Told<Preemption>,
    /// Queueing disciplines, the root first.
    pub qdiscs: Told<Vec<Qdisc>>,
    /// What AF_XDP can do.
    pub xdp: Told<Xdp>,
    /// How it is polled.
    pub napis: Told<Vec<Napi>>,
    /// The threads that poll it, where it has them and they can be seen.
    pub napi_threads: Vec<Thread>,
    /// Its interrupts that have occurred; nothing where they are not known.
    pub interrupts: Option<Vec<Interrupt>>,
    /// Whether all tasks of the machine could be looked at.
    pub sees_all_tasks: bool,
    /// Saving of power.
    pub power: Power,
    /// The machine's clocks, its own among them, and what they follow.
    pub clocks: Option<Clocks>,
}

/// Why an interface is not checked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NicError {
    /// There is none of that name.
    #[error("there is no interface {0:?} here: `ip -br link` lists those that there are")]
    Missing(String),
    /// Nothing of a NIC applies.
    #[error("{0} is the loopback, which has no NIC: name an Ethernet interface, which `ip -br link` lists")]
    Loopback(String),
    /// Wireless waits for its medium.
    #[error(
        "{0} is wireless, whose frames wait for the air for milliseconds: name a wired interface, which `ip -br link` lists"
    )]
    Wireless(String),
    /// Another kind of network.
    #[error("{0} is no Ethernet interface: name one that is, which `ip -br link` lists")]
    NotEthernet(String),
    /// The kernel did not tell.
    #[error("cannot ask the kernel about {interface} ({why}): compare with `ip link show {interface}`")]
    Unknown {
        /// The name.
        interface: String,
        /// What went wrong.
        why: String,
    },
}

impl Nic {
    /// Learns all there is to learn about an interface. Nothing is changed.
    ///
    /// # Errors
    /// [`NicError`].
    pub fn look(root: &Root, answers: &mut Answers, interface: &str) -> Result<Self, NicError> {
        let (link, counts) = find(root, answers, interface)?;
        let folder = Folder::of(root, &link);
        let napis = netdev::napis(answers, &link);
        let driver = link.kind.clone().or_else(|| folder.driver());
        Ok(Self {
            index: link.index,
            hardware: Hardware::of(&link, driver.as_deref()),
            driver,
            mac: link.mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":")),
            mtu: link.mtu,
            is_up: link.is_up,
            has_carrier: link.has_carrier,
            counts,
            mode: ethtool::mode(answers, &link),
            coalescing: ethtool::coalescing(answers, &link),
            eee: ethtool::eee(answers, &link),
            pause: ethtool::pause(answers, &link),
            rings: ethtool::rings(answers, &link),
            channels: ethtool::channels(answers, &link),
            features: ethtool::features(answers, &link),
            preemption: ethtool::preemption(answers, &link),
            qdiscs: qdisc::all(answers, &link),
            xdp: netdev::xdp(answers, &link),
            interrupts: interrupts::all(&folder, &napis),
            sees_all_tasks: interrupts::sees_all_tasks(root),
            power: power::power(&folder, &link.name),
            clocks: clocks::look(root),
            napi_threads: interrupts::of_napis(root, &napis),
            stamping: ethtool::stamping(answers, &link),
            napis,
            interface: link.name,
        })
    }

    /// Its clock among those of the machine.
    fn clock(&self) -> Option<&HardwareClock> {
        let device = format!("ptp{}", self.stamping.known()?.phc?);
        self.clocks.as_ref()?.hardware.iter().find(|clock| clock.device == device)
    }
}

/// How many queues an interface receives on; `None` where that is not told.
#[must_use]
pub fn receive_queues(root: &Root, interface: &str) -> Option<u32> {
    let mut answers = Answers::of(root);
    let (link, _) = answers.link(interface).ok()??;
    let channels = ethtool::channels(&mut answers, &link);
    let &Channels { rx, combined, .. } = channels.known()?;
    Some(rx.unwrap_or(0) + combined.unwrap_or(0)).filter(|&queues| queues > 0)
}

fn find(root: &Root, answers: &mut Answers, interface: &str) -> Result<(Link, Option<Counts>), NicError> {
    let link = if is_name(interface) { answers.link(interface) } else { Ok(None) };
    let name = || interface.to_owned();
    let found = link.map_err(|why| NicError::Unknown { interface: name(), why })?;
    let (link, counts) = found.ok_or_else(|| NicError::Missing(name()))?;
    let is_wireless = ["wireless", "phy80211"].iter().any(|file| Folder::of(root, &link).exists(file));
    match link.hardware {
        ARPHRD_LOOPBACK => Err(NicError::Loopback(name())),
        ARPHRD_ETHER if is_wireless => Err(NicError::Wireless(name())),
        ARPHRD_ETHER => Ok((link, counts)),
        _ => Err(NicError::NotEthernet(name())),
    }
}

/// Whether an interface can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control())
}

/// What carries an interface's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hardware {
    /// A NIC.
    Nic,
    /// A NIC that the host of this guest makes up.
    OfHost,
    /// Software of this machine, as for veth, VLANs and bridges.
    Software,
}

/// Drivers of NICs that hosts make up for their guests.
const OF_HOSTS: [&str; 9] =
    ["virtio_net", "vmxnet3", "xen_netfront", "vif", "hv_netvsc", "netvsc", "ena", "gve", "mana"];
/// The kind of a switch's port, which is hardware in spite of having a kind.
const SWITCH_PORT: &str = "dsa";

impl Hardware {
    fn of(link: &Link, driver: Option<&str>) -> Option<Self> {
        match (link.kind.as_deref(), driver?) {
            (Some(kind), _) if kind != SWITCH_PORT => Some(Self::Software),
            (_, driver) if OF_HOSTS.contains(&driver) => Some(Self::OfHost),
            _ => Some(Self::Nic),
        }
    }
}

/// An interface's folder in sysfs, if it is that of this interface: a mounted sysfs shows the namespace that it was
/// mounted in, which can have another interface of the same name.
struct Folder<'a> {
    root: &'a Root,
    path: Option<String>,
}

impl<'a> Folder<'a> {
    fn of(root: &'a Root, link: &Link) -> Self {
        let path = format!("sys/class/net/{}", link.name);
        let is_this = root.number(&format!("{path}/ifindex")) == Some(link.index);
        Self { root, path: is_this.then_some(path) }
    }

    /// The path of a file in it.
    fn file(&self, name: &str) -> Option<String> {
        Some(format!("{}/{name}", self.path.as_ref()?))
    }

    fn read(&self, name: &str) -> Option<String> {
        self.root.read(&self.file(name)?)
    }

    fn exists(&self, name: &str) -> bool {
        self.file(name).is_some_and(|path| self.root.exists(&path))
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.file(name).map_or_else(Vec::new, |path| self.root.list(&path))
    }

    fn driver(&self) -> Option<String> {
        let target = self.root.link(&self.file("device/driver")?)?;
        target.rsplit('/').next().map(str::to_owned)
    }
}
