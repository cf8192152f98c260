//! The limit for the idle states of all CPUs that programs set together, by `/dev/cpu_dma_latency`.
//!
//! Source: Linux, Documentation/power/pm_qos_interface.rst.

use crate::{Root, Unreadable, tasks};

/// The limit of all programs together, four bytes in native order, us. Each request lasts while its program has this open.
pub(crate) const DEVICE: &str = "dev/cpu_dma_latency";
/// The limit without any request, us (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
const NO_LIMIT_US: i32 = 2_000_000_000;
/// Services that keep a limit as a setting of the machine, from boot to shutdown, by the name of their process.
const SERVICES: [&str; 1] = ["tuned"];

/// A process that has the device open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) process: u32,
    pub(crate) name: String,
}

impl Holder {
    /// True for a service that keeps a limit as a setting.
    pub(crate) fn is_service(&self) -> bool {
        SERVICES.contains(&&*self.name)
    }
}

/// The limit, us; `None` if no program has set one.
///
/// # Errors
/// [`Unreadable`]: only root may read the device, and its content can be damaged. Without the device, there is no limit.
pub(crate) fn limit_us(root: &Root) -> Result<Option<u64>, Unreadable> {
    let bytes = match root.read_bytes(DEVICE) {
        Err(Unreadable::Absent) => return Ok(None),
        read => read?,
    };
    let limit_us = bytes.as_slice().try_into().map(i32::from_ne_bytes).map_err(|_| Unreadable::NotUnderstood)?;
    if limit_us >= NO_LIMIT_US {
        return Ok(None);
    }
    u64::try_from(limit_us).map(Some).map_err(|_| Unreadable::NotUnderstood)
}

/// The limit and the service that keeps it as a setting; `None` if there is no limit, or if another program may have set it.
pub(crate) fn of_service(root: &Root) -> Option<(u64, Holder)> {
    let limit_us = limit_us(root).ok()??;
    let holders = holders(root).ok()?;
    // Programs come first.
    holders.into_iter().next().filter(Holder::is_service).map(|first| (limit_us, first))
}

/// The processes that have the device open, as far as this process may see: programs first, then services.
///
/// # Errors
/// The processes cannot be listed, or one of these has a name that cannot be read.
pub(crate) fn holders(root: &Root) -> Result<Vec<Holder>, Unreadable> {
    // These reads are not remembered, because a copy of the machine must not name the files of its programs.
    let unkept = root.not_kept();
    let open_file = |process: u32| {
        let folder = format!("proc/{process}/fd");
        let is_device = |path: &String| unkept.link(path).is_some_and(|target| target == format!("/{DEVICE}"));
        unkept.list(&folder).into_iter().map(|file| format!("{folder}/{file}")).find(is_device)
    };
    let earlier = root.take_unread();
    let listed = root.list("proc");
    let unread = root.take_unread();
    root.add_unread(earlier);
    if let Some(unread) = unread.first() {
        return Err(unread.why);
    }
    let mut holders = Vec::new();
    for process in listed.iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Some(file) = open_file(process) else { continue };
        let name = match tasks::name(&unkept, &process.to_string()) {
            // It has ended meanwhile.
            Err(Unreadable::Absent) => continue,
            name => name?,
        };
        let holder = Holder { process, name };
        if holder.is_service() {
            // A copy needs these to know the limit as a setting.
            let _ = (root.link(&file), root.read(&format!("proc/{process}/comm")));
        }
        holders.push(holder);
    }
    holders.sort_by_key(Holder::is_service);
    Ok(holders)
}
