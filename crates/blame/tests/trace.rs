//! The trace of the running kernel. Needs root; tools/test leaves `rights::` out without.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod rights {
    use std::{thread, time::Duration};

    use blame::{
        Event, Instance, Settings, Tracefs,
        event::{Left, What},
    };
    use sys::clock::Clock;

    fn settings() -> Settings<'static> {
        Settings { buffer_kb_per_cpu: 512, ..Settings::default() }
    }

    fn now_ns() -> u64 {
        Clock::Monotonic.now_ns().unsigned_abs()
    }

    fn drain_all(instance: &mut Instance) -> Vec<Event> {
        let mut events = Vec::new();
        for cpu in instance.cpus().collect::<Vec<_>>() {
            instance.drain(cpu, &mut events).unwrap();
        }
        events.sort_by_key(|event| event.at_ns);
        events
    }

    #[test]
    fn a_sleep_is_seen_from_its_begin_to_its_wake_up() {
        let mut instance = Instance::create(&Tracefs::open().unwrap(), &settings()).unwrap();
        // The boot CPU: some kernels do not trace the idle thread of a CPU that was offline before.
        let sleep = || {
            sys::sched::set_affinity(&[0]).unwrap();
            let before = now_ns();
            thread::sleep(Duration::from_millis(5));
            (sys::sched::thread_id(), before, now_ns())
        };
        let (sleeper, before, after) =
            thread::Builder::new().name("sleeper".to_owned()).spawn(sleep).unwrap().join().unwrap();
        let events = drain_all(&mut instance);
        let at = |what: &dyn Fn(&What) -> bool| {
            let found = events.iter().find(|event| (before..=after).contains(&event.at_ns) && what(&event.what));
            found.unwrap_or_else(|| panic!("not in {} events", events.len())).at_ns
        };
        let asleep = at(&|what| match what {
            What::Switch { from, left: Left::Sleeping, .. } => {
                from.pid == sleeper && from.comm.to_string() == "sleeper"
            }
            _ => false,
        });
        let woken = at(&|what| matches!(what, What::Waking { task, .. } if task.pid == sleeper));
        let back = at(&|what| matches!(what, What::Switch { to, .. } if to.pid == sleeper));
        assert!(asleep + 4_000_000 < woken && woken <= back, "{before} {asleep} {woken} {back} {after}");
    }
}
