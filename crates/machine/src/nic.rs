//! A network interface: its settings as driver and kernel report them, and the settings that may cause latency.
//!
//! | module | contents |
//! |---|---|
//! | `answers` | the source of netlink answers: the kernel, or files of a recorded machine |
//! | `counts` | counts of lost frames |
//! | `ethtool` | settings of the driver: coalescing, rings, pause, EEE, features, timestamps |
//! | `netdev` | polling by the kernel (NAPI), and support for AF_XDP |
//! | `qdisc` | queueing disciplines |
//! | `launch` | support for launch times |
//! | `interrupts` | interrupts, their CPUs, and the threads that serve them |
//! | `power` | power saving of the device |
//! | `route` | the interface for an address |
//! | `findings` | the checks |
//! | `parameter` | the settings that can be changed |
//! | `settings` | the settings of a run, as text |
//! | `stamping` | support for timestamps of measured frames |

mod answers;
mod counts;
mod ethtool;
mod findings;
mod interrupts;
mod launch;
mod netdev;
mod parameter;
mod power;
mod qdisc;
mod route;
mod settings;
mod stamping;
mod words;

use std::{
    thread,
    time::{Duration, Instant},
};

use record::{Clocks, HardwareClock};
use serde::Serialize;
use sys::link::{Link, Links};
use thiserror::Error;

pub(crate) use self::interrupts::sees_all_tasks;
pub use self::{
    answers::{Answers, Reading},
    counts::Counts,
    ethtool::{Channels, Coalescing, Eee, Features, Mode, Pause, Preemption, Rings, Stamping},
    findings::findings,
    interrupts::{Interrupt, Thread},
    launch::{LaunchError, Launching},
    netdev::{Napi, Xdp},
    parameter::{Parameter, Value},
    power::Power,
    qdisc::{Qdisc, Shaper},
    route::{NextHop, RouteError, next_hop, outgoing_interface},
    settings::NicSettings,
    stamping::{NoStamps, can_stamp, clock_of_sent_stamps},
};
use crate::{Root, clocks, interface_name, root::Unread};

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;

/// An interface with everything that could be read about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nic {
    /// Name.
    pub interface: String,
    /// Interface index.
    pub index: u32,
    /// The driver, or the kind of a software interface, e.g. `veth`.
    pub driver: Option<String>,
    /// The kind of hardware behind the interface.
    pub hardware: Option<Hardware>,
    /// Ethernet address, e.g. `02:00:00:00:00:01`.
    pub mac: Option<String>,
    /// Largest payload of a frame, bytes.
    pub mtu: Option<u32>,
    /// True if the interface is administratively up.
    pub is_up: bool,
    /// True if it has a carrier.
    pub has_carrier: Option<bool>,
    /// Counts of frames since the interface was created.
    pub counts: Option<Counts>,
    /// Speed and duplex.
    pub mode: Reading<Mode>,
    /// Interrupt coalescing.
    pub coalescing: Reading<Coalescing>,
    /// Energy-efficient Ethernet.
    pub eee: Reading<Eee>,
    /// Pause frames.
    pub pause: Reading<Pause>,
    /// Sizes of the rings.
    pub rings: Reading<Rings>,
    /// Numbers of queues.
    pub channels: Reading<Channels>,
    /// Offloads.
    pub features: Reading<Features>,
    /// Support for timestamps.
    pub stamping: Reading<Stamping>,
    /// Frame preemption.
    pub preemption: Reading<Preemption>,
    /// Queueing disciplines, the root first.
    pub qdiscs: Reading<Vec<Qdisc>>,
    /// Support for AF_XDP.
    pub xdp: Reading<Xdp>,
    /// The NAPI instances that poll it.
    pub napis: Reading<Vec<Napi>>,
    /// The threads that poll it, if it has any and they are visible.
    pub napi_threads: Vec<Thread>,
    /// Its interrupts that have occurred; `None` if they are not known.
    pub interrupts: Option<Vec<Interrupt>>,
    /// True if all tasks of the machine are visible.
    pub sees_all_tasks: bool,
    /// Power saving of the device.
    pub power: Power,
    /// The clocks of the machine, including the clock of this interface, and their time sources.
    pub clocks: Option<Clocks>,
    /// The files and folders that could not be read, by the findings that they decide.
    #[serde(skip)]
    unread: UnreadFiles,
}

/// Files and folders that exist, or may exist, but could not be read: the facts from them are incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct UnreadFiles {
    /// Sources for the numbers of its interrupts.
    interrupts: Vec<Unread>,
    /// The CPUs of the interrupts.
    affinity: Vec<Unread>,
    /// The threads of the interrupts.
    threads: Vec<Unread>,
    /// Power saving of the device.
    power: Vec<Unread>,
    /// The programs that synchronise clocks.
    programs: Vec<Unread>,
}

/// Error: an interface cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NicError {
    /// No interface has this name.
    #[error("there is no interface {0:?} here: `ip -br link` lists the interfaces")]
    Missing(String),
    /// The loopback has no NIC.
    #[error("{0} is the loopback, which has no NIC: name an Ethernet interface (`ip -br link` lists them)")]
    Loopback(String),
    /// Wireless frames wait until the medium is free.
    #[error(
        "{0} is wireless, so its frames wait milliseconds for the medium: name a wired interface (`ip -br link` lists them)"
    )]
    Wireless(String),
    /// Not an Ethernet interface.
    #[error("{0} is not an Ethernet interface: name one that is (`ip -br link` lists them)")]
    NotEthernet(String),
    /// The kernel did not answer.
    #[error("cannot query {interface} ({why}): compare with `ip link show {interface}`")]
    Unknown {
        /// Name of the interface.
        interface: String,
        /// The reason.
        why: String,
    },
}

impl Nic {
    /// Reads everything about an interface. Changes nothing.
    ///
    /// # Errors
    /// [`NicError`].
    pub fn read(root: &Root, answers: &mut Answers, interface: &str) -> Result<Self, NicError> {
        let (link, counts) = find(root, answers, interface)?;
        let root = &root.kept_at_once();
        let folder = Folder::of(root, &link);
        let napis = netdev::napis(answers, &link);
        let driver = link.kind.clone().or_else(|| folder.driver());
        let mut unread = UnreadFiles::default();
        // Without the folder's number, the folder is not used at all.
        let of_folder: Vec<Unread> =
            root.take_unread().into_iter().filter(|unread| unread.path.ends_with("/ifindex")).collect();
        let interrupts = interrupts::all(&folder, &napis, &mut unread);
        unread.interrupts.extend(of_folder.iter().cloned());
        let power = power::power(&folder, &link.name);
        unread.power = of_folder.into_iter().chain(root.take_unread()).collect();
        let clocks = clocks::read(root);
        unread.programs = root.take_unread();
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
            interrupts,
            sees_all_tasks: sees_all_tasks(root),
            power,
            clocks,
            napi_threads: interrupts::of_napis(root, &napis),
            stamping: ethtool::stamping(answers, &link),
            unread,
            napis,
            interface: link.name,
        })
    }

    /// The clock of this interface.
    fn clock(&self) -> Option<&HardwareClock> {
        let device = format!("ptp{}", self.stamping.known()?.phc?);
        self.clocks.as_ref()?.hardware.iter().find(|clock| clock.device == device)
    }
}

/// The number of receive queues of an interface; `None` if it is not known.
#[must_use]
pub fn receive_queues(root: &Root, interface: &str) -> Option<u32> {
    let mut answers = Answers::of(root);
    let (link, _) = answers.link(interface).ok()??;
    let channels = ethtool::channels(&mut answers, &link);
    let &Channels { rx, combined, .. } = channels.known()?;
    Some(rx.unwrap_or(0) + combined.unwrap_or(0)).filter(|&queues| queues > 0)
}

/// The threads that serve an interface, or the reason why none are known.
#[derive(Debug)]
pub(crate) enum ServingThreads {
    /// At least one thread.
    Threads(Vec<Thread>),
    /// The kernel handles its interrupts without threads.
    NotThreaded,
    /// No interrupt of it is known.
    NoInterrupt,
    /// Kernel threads are not visible.
    Hidden,
}

/// The threads that serve an interface: those of its interrupts and those that poll it.
pub(crate) fn serving_threads(root: &Root, interface: &str) -> Result<ServingThreads, NicError> {
    let mut answers = Answers::of(root);
    let (link, _) = find(root, &mut answers, interface)?;
    let napis = netdev::napis(&mut answers, &link);
    Ok(match interrupts::serving(&Folder::of(root, &link), &napis, interface) {
        Some(threads) if !threads.is_empty() => ServingThreads::Threads(threads),
        _ if !sees_all_tasks(root) => ServingThreads::Hidden,
        Some(_) => ServingThreads::NotThreaded,
        None => ServingThreads::NoInterrupt,
    })
}

fn find(root: &Root, answers: &mut Answers, interface: &str) -> Result<(Link, Option<Counts>), NicError> {
    let link = if interface_name::is_valid(interface) { answers.link(interface) } else { Ok(None) };
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

/// The kind of hardware behind an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hardware {
    /// A physical NIC.
    Nic,
    /// A virtual NIC that the host provides to this guest.
    OfHost,
    /// Software on this machine, e.g. veth, VLAN or bridge.
    Software,
}

/// Drivers of virtual NICs.
const VIRTUAL_NIC_DRIVERS: [&str; 9] =
    ["virtio_net", "vmxnet3", "xen_netfront", "vif", "hv_netvsc", "netvsc", "ena", "gve", "mana"];
/// The kind of a switch port, which is hardware although it has a kind.
const SWITCH_PORT: &str = "dsa";

impl Hardware {
    fn of(link: &Link, driver: Option<&str>) -> Option<Self> {
        match (link.kind.as_deref(), driver?) {
            (Some(kind), _) if kind != SWITCH_PORT => Some(Self::Software),
            (_, driver) if VIRTUAL_NIC_DRIVERS.contains(&driver) => Some(Self::OfHost),
            _ => Some(Self::Nic),
        }
    }
}

/// The folder of an interface in sysfs, if it belongs to this interface: a sysfs mount shows the namespace it was
/// mounted in, which may have another interface of the same name.
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

    /// The path of a file in the folder.
    fn file(&self, name: &str) -> Option<String> {
        Some(format!("{}/{name}", self.path.as_ref()?))
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

/// Waits until a link is as wanted, for this time at most, and returns if it is. The kernel's refusal counts as that.
#[must_use]
pub fn wait_for_link(interface: &str, time: Duration, is_wanted: impl Fn(&Link) -> bool) -> bool {
    let Ok(mut links) = Links::open() else { return true };
    let since = Instant::now();
    while links.find(interface).is_ok_and(|link| !is_wanted(&link)) {
        if since.elapsed() > time {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}
