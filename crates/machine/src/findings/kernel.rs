//! The kernel: preemption, throttling, timers and the clock source.

use record::{Finding, Machine};

use super::{Check, CheckContext, Explain, evidence, fail, not_applicable, ok, unknown, warn, without};
use crate::kernel::{DYNAMIC, FAIR_SERVERS_OFF, Preempt, has_fair_server, preempt as preempt_model};

pub(super) const CHECKS: &[Check] = &[preempt, rt_throttling, timer_migration, clock_source];

fn preempt(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.preempt";
    let machine = context.machine;
    let found = preempt_model(context.root, machine.kernel_build.as_deref(), machine.cmdline.as_deref());
    let Some(Preempt { model, evidence }) = found else {
        return unknown(ID, "preemption model not readable", context.evidence("proc/sys/kernel/version"));
    };
    if model == "PREEMPT_RT" {
        return ok(ID, "real-time kernel (PREEMPT_RT)", evidence);
    }
    if let Some(gravity) = &machine.evl_gravity {
        let title = format!("EVL core (gravity {gravity}) on a kernel without PREEMPT_RT ({model})");
        return warn(ID, title, evidence).because(
            "Only threads attached to the EVL core are real-time; ordinary threads wait as on any other kernel.",
            "attach the threads that must be on time to the EVL core: evl_attach_self() of libevl",
        );
    }
    let install = real_time_kernel(context);
    let title = format!("kernel without real-time preemption ({model})");
    match model.as_str() {
        "full" | "lazy" | "full or lazy" => warn(ID, title, evidence).because(
            "Interrupt handlers and code under spin locks still delay a real-time thread, by hundreds of microseconds and more.",
            install,
        ),
        DYNAMIC => warn(ID, "kernel without real-time preemption, its dynamic mode not readable", evidence).because(
            "Even with the boot argument preempt=full, which shortens delays, interrupt handlers and code under spin locks delay a real-time thread.",
            install,
        ),
        _ => fail(ID, title, evidence).because(
            if machine.kernel_build.as_deref().is_some_and(|build| build.contains("PREEMPT_DYNAMIC")) {
                "A system call of any process delays a real-time thread until it ends or reaches a scheduling point. The boot argument preempt=full shortens these delays, but does not make the kernel real-time."
            } else {
                "A system call of any process delays a real-time thread until it ends or reaches a scheduling point."
            },
            install,
        ),
    }
}

/// The command that installs a real-time kernel on this distribution.
fn real_time_kernel(context: &CheckContext) -> String {
    let Machine { os, arch, .. } = context.machine;
    let os = os.as_deref().unwrap_or_default();
    let packages = match arch.as_deref() {
        Some("x86_64") => Some("amd64"),
        Some("aarch64") => Some("arm64"),
        _ => None,
    };
    match packages {
        Some(arch) if os.starts_with("Debian") => format!("sudo apt install linux-image-rt-{arch}"),
        Some(_) if os.starts_with("Ubuntu") => "sudo pro enable realtime-kernel".to_owned(),
        _ => "install a kernel built with CONFIG_PREEMPT_RT=y (mainline since Linux 6.12)".to_owned(),
    }
}

fn rt_throttling(context: &CheckContext) -> Finding {
    const ID: &str = "rt.throttling";
    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";
    if context.machine.kernel.as_deref().is_some_and(has_fair_server) {
        return fair_server(context, ID);
    }
    let runtime = match context.root.try_read(RUNTIME) {
        Ok(runtime) => runtime,
        Err(why) => return unknown(ID, "limit of real-time threads not readable", without(RUNTIME, why)),
    };
    let read = evidence(RUNTIME, &runtime);
    match (runtime.parse::<i64>(), context.root.number::<i64>(PERIOD)) {
        (Ok(-1), _) => ok(ID, "real-time threads are not throttled", read),
        (Ok(runtime), Some(period)) if runtime >= period => ok(ID, "real-time threads are not throttled", read),
        (Ok(runtime), Some(period)) => {
            let (stopped_ms, period_ms) = (period.saturating_sub(runtime) / 1000, period / 1000);
            let title = format!("busy real-time threads are stopped for {stopped_ms} ms of every {period_ms} ms");
            warn(ID, title, format!("{read}, {}", context.evidence(PERIOD))).because(
                "Real-time threads that use more than their share of a CPU wait until the end of the period, even past a deadline.",
                "echo -1 | sudo tee /proc/sys/kernel/sched_rt_runtime_us",
            )
        }
        _ => unknown(ID, "limit of real-time threads not understood", read),
    }
}

/// Since Linux 6.12 a server gives ordinary threads CPU time on demand; the old limit has no effect.
fn fair_server(context: &CheckContext, id: &str) -> Finding {
    const NS_PER_MS: u64 = 1_000_000;
    let folder = format!("sys/kernel/debug/sched/fair_server/cpu{}", context.online.first().unwrap_or(0));
    let path = format!("{folder}/runtime");
    let runtime = match context.root.try_read(&path) {
        Ok(runtime) => runtime,
        Err(why) => {
            let title = "fair server not readable; unless changed, a real-time thread that never sleeps loses 50 ms of each second";
            return unknown(id, title, without(&path, why));
        }
    };
    let read = evidence(&path, &runtime);
    match (runtime.parse::<u64>(), context.root.number::<u64>(&format!("{folder}/period"))) {
        (Ok(0), _) => ok(id, "busy real-time threads give no time to ordinary ones", read),
        (Ok(runtime_ns), Some(period_ns)) => {
            let (given_ms, period_ms) = (runtime_ns / NS_PER_MS, period_ns / NS_PER_MS);
            warn(id, format!("busy real-time threads give ordinary ones {given_ms} ms of every {period_ms} ms"), read).because(
                "A real-time thread that never sleeps loses this time to waiting ordinary threads; one that sleeps between its deadlines does not. Without the server, one that never sleeps starves its CPU.",
                FAIR_SERVERS_OFF,
            )
        }
        _ => unknown(id, "fair server not understood", read),
    }
}

/// The timer of a sleeping thread on a tickless CPU may move to another CPU, which must then wake the first one.
fn timer_migration(context: &CheckContext) -> Finding {
    const ID: &str = "kernel.timer_migration";
    const PATH: &str = "proc/sys/kernel/timer_migration";
    let tickless = context.machine.cpus_nohz_full.as_deref().unwrap_or_default();
    match context.root.try_read(PATH) {
        Ok(value) if value == "0" => ok(ID, "timers stay on their CPU", evidence(PATH, &value)),
        Ok(value) if tickless.is_empty() => {
            ok(ID, "no CPU runs without a tick, so timers of running threads stay on their CPU", evidence(PATH, &value))
        }
        Ok(value) => warn(ID, format!("timers of CPUs {tickless} may run on other CPUs"), evidence(PATH, &value)).because(
            "The kernel may move timers of a nohz_full CPU to a housekeeping CPU, whose delays then add to those of the thread.",
            "echo 0 | sudo tee /proc/sys/kernel/timer_migration",
        ),
        Err(crate::Unreadable::Absent) if context.root.exists("proc/sys/kernel") => {
            not_applicable(ID, "this kernel does not migrate timers", context.evidence(PATH))
        }
        Err(why) => unknown(ID, "timer migration not readable", without(PATH, why)),
    }
}

fn clock_source(context: &CheckContext) -> Finding {
    const ID: &str = "clock.source";
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let path = format!("{FOLDER}/current_clocksource");
    let clock = match context.root.try_read(&path) {
        Ok(clock) => clock,
        Err(why) => return unknown(ID, "clock source not readable", without(&path, why)),
    };
    let read = evidence(&path, &clock);
    let available = context.root.read(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let remedy =
        match available.split_whitespace().find(|clock| ["tsc", "arch_sys_counter", "kvm-clock"].contains(clock)) {
            Some(better) => format!("echo {better} | sudo tee /{path}"),
            None => "find out why the kernel rejected the CPU's counter: sudo dmesg | grep -i -e tsc -e clocksource"
                .to_owned(),
        };
    match clock.as_str() {
        "jiffies" | "refined-jiffies" => fail(ID, format!("clock counts ticks ({clock})"), read)
            .because("Timestamps have the resolution of a tick, 1 to 10 ms: smaller latencies cannot be measured.", remedy),
        "hpet" | "acpi_pm" | "pit" => warn(ID, format!("slow clock ({clock})"), read).because(
            "Each reading of the clock is a system call and an access to a slow device, which costs microseconds in every cycle.",
            remedy,
        ),
        // Read in user space, from a counter of the CPU or a page of the hypervisor.
        "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen" | "arch_sys_counter" | "riscv_clocksource"
        | "timebase" | "tod" => ok(ID, format!("clock {clock}"), read),
        other => unknown(ID, format!("clock {other} is not known to punctual, so it may be slow"), read),
    }
}
