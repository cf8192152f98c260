//! Trace files of the running kernel, held against trace-cmd. Needs root; tools/test leaves `rights::` out without.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod rights {
    use std::{collections::BTreeMap, path::Path, process::Command, thread, time::Duration};

    use blame::{
        Event, Instance, Settings, Tracefs,
        event::{Left, What},
        trace::{Dat, DatError},
    };

    /// Traces some sleeps of a thread called `sleeper`; some pages are drained before the file is written.
    fn record(path: &Path) -> Vec<Event> {
        let settings = Settings { buffer_kb_per_cpu: 4096, ..Settings::default() };
        let mut instance = Instance::create(&Tracefs::open().unwrap(), &settings).unwrap();
        instance.keep_drained();
        let sleeps = || {
            thread::Builder::new()
                .name("sleeper".to_owned())
                .spawn(|| (0..20).for_each(|_| thread::sleep(Duration::from_millis(1))))
                .unwrap()
                .join()
                .unwrap();
        };
        sleeps();
        let mut drained = Vec::new();
        for cpu in instance.cpus().collect::<Vec<_>>() {
            instance.drain(cpu, &mut drained).unwrap();
        }
        sleeps();
        instance.set_on(false).unwrap();
        instance.write_dat(path).unwrap();
        drained
    }

    fn trace_cmd(arguments: &[&str], file: &Path) -> String {
        // It mounts debugfs and tracefs where they are not, and leaves them there.
        let mut command = Command::new("unshare");
        let output = command.args(["--mount", "trace-cmd"]).args(arguments).arg(file).output().unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All events of a file, in order of their times.
    fn events(dat: &mut Dat) -> Vec<Event> {
        let mut events = Vec::new();
        for cpu in dat.cpus().collect::<Vec<_>>() {
            dat.events(cpu, &mut events).unwrap();
        }
        events.sort_by_key(|event| event.at_ns);
        events
    }

    /// How trace-cmd writes what it and we both read: event by event, with CPU, process and time.
    fn shown(dat: &Dat, event: &Event) -> Option<String> {
        let what = match event.what {
            What::Switch { from, left, to } => {
                let left = if left == Left::Preempted { "R" } else { "-" };
                format!(
                    "sched_switch: {}:{} [{}] {left} {}:{} [{}]",
                    from.comm, from.pid, from.priority, to.comm, to.pid, to.priority
                )
            }
            What::Waking { task, target_cpu } => {
                format!(
                    "sched_waking: comm={} pid={} prio={} target_cpu={target_cpu:03}",
                    task.comm, task.pid, task.priority
                )
            }
            What::IrqEntry { irq, name } => format!("irq_handler_entry: irq={irq} name={}", dat.names().text(name)),
            What::SoftirqEntry { vec } => {
                format!("softirq_entry: vec={vec} [action={}]", blame::event::softirq_name(vec))
            }
            What::VectorEntry { name } => format!("{}_entry:", dat.names().text(name)),
            What::VectorExit { name } => format!("{}_exit:", dat.names().text(name)),
            What::TimerEntry { function, .. } => {
                format!("expire_entry: function={}", dat.symbol(function).unwrap_or_default())
            }
            What::Signal { signal, pid } => format!("signal_generate: sig={signal} pid={pid}"),
            _ => return None,
        };
        Some(format!(
            "{} [{:03}] {}.{:09} {what}",
            event.pid,
            event.cpu,
            event.at_ns / 1_000_000_000,
            event.at_ns % 1_000_000_000
        ))
    }

    /// The same from a line of `trace-cmd report -t`: `  comm-pid   [000] 123.456789012: name:  fields`.
    fn reported(line: &str) -> Option<String> {
        let (head, rest) = line.split_once(" [")?;
        let pid = head.trim_end().rsplit_once('-').map_or("0", |(_, pid)| pid);
        let (cpu, rest) = rest.split_once("] ")?;
        let (time, rest) = rest.trim_start().split_once(": ")?;
        let (name, fields) = rest.trim_start().split_once(':')?;
        let words: Vec<&str> = fields.split_whitespace().collect();
        let field = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).unwrap_or_default();
        let what = match name {
            // `from:pid [prio] S ==> to:pid [prio]`, names with blanks in them.
            "sched_switch" => {
                let (from, to) = fields.trim().split_once(" ==> ")?;
                let (from, state) = from.rsplit_once(' ')?;
                format!("{name}: {from} {} {to}", if state.starts_with('R') { "R" } else { "-" })
            }
            "sched_waking" | "softirq_entry" => format!("{name}: {}", fields.trim()),
            "irq_handler_entry" => format!("{name}: irq={} name={}", field("irq="), field("name=")),
            "hrtimer_expire_entry" | "timer_expire_entry" => {
                format!("expire_entry: function={}", field("function=").split('/').next()?.split('+').next()?)
            }
            "signal_generate" => format!("{name}: sig={} pid={}", field("sig="), field("pid=")),
            "irq_handler_exit" | "softirq_exit" | "softirq_raise" | "hrtimer_expire_exit" | "timer_expire_exit" => {
                return None;
            }
            vector if vector.ends_with("_entry") || vector.ends_with("_exit") => format!("{vector}:"),
            _ => return None,
        };
        Some(format!("{pid} [{cpu}] {time} {what}"))
    }

    #[test]
    fn trace_cmd_reads_what_we_write_and_tells_the_same_events() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.dat");
        let drained = record(&path);
        let mut dat = Dat::open(&path).unwrap();
        assert_eq!(dat.clock(), "mono");
        let events = events(&mut dat);
        assert!(!drained.is_empty() && drained.iter().all(|event| events.contains(event)), "what was drained is kept");
        let ours: Vec<String> = events.iter().filter_map(|event| shown(&dat, event)).collect();
        let report = trace_cmd(&["report", "-t", "-i"], &path);
        let theirs: Vec<String> = report.lines().filter_map(reported).collect();
        assert!(ours.iter().filter(|line| line.contains("sched_waking: comm=sleeper")).count() >= 40, "{}", ours.len());
        // Of events at the same time, either may stand first.
        let count = |lines: &[String]| {
            let mut counts = BTreeMap::new();
            lines.iter().for_each(|line| *counts.entry(line.clone()).or_insert(0) += 1);
            counts
        };
        let (ours, theirs) = (count(&ours), count(&theirs));
        for (line, number) in &ours {
            assert_eq!(theirs.get(line), Some(number), "only ours: {line}");
        }
        for line in theirs.keys() {
            assert!(ours.contains_key(line), "only trace-cmd's: {line}");
        }
    }

    #[test]
    fn version_7_is_read_as_version_6_and_compression_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        record(&path("6.dat"));
        let convert = |arguments: &[&str], to: &str| {
            let (from, to) = (path("6.dat"), path(to));
            let whole = [&["convert", "-i", from.to_str().unwrap()], arguments, &["-o"]].concat();
            trace_cmd(&whole, &to);
        };
        convert(&["--compression", "none"], "7.dat");
        convert(&["--compression", "zstd"], "7z.dat");
        let (mut six, mut seven) = (Dat::open(&path("6.dat")).unwrap(), Dat::open(&path("7.dat")).unwrap());
        assert_eq!(six.clock(), seven.clock());
        assert_eq!(events(&mut six), events(&mut seven));
        let error = Dat::open(&path("7z.dat")).unwrap_err();
        assert!(matches!(error, DatError::Compressed { .. }), "{error}");
        assert!(error.to_string().contains("trace-cmd convert"), "{error}");
    }
}
