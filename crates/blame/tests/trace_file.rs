//! Compares trace files of the running kernel with trace-cmd. Needs root; tools/test skips `rights::` without it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

mod rights {
    use std::{path::Path, process::Command, thread, time::Duration};

    use blame::{
        Event, Instance, Settings, Tracefs,
        trace::{Dat, DatError},
    };

    use crate::common::{assert_same, events, shown};

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
        // trace-cmd mounts debugfs and tracefs if they are not mounted, and leaves them mounted.
        let mut command = Command::new("unshare");
        let output = command.args(["--mount", "trace-cmd"]).args(arguments).arg(file).output().unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn trace_cmd_reads_the_same_events_from_our_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.dat");
        let drained = record(&path);
        let mut dat = Dat::open(&path).unwrap();
        assert_eq!(dat.clock(), "mono");
        let events = events(&mut dat);
        assert!(!drained.is_empty() && drained.iter().all(|event| events.contains(event)), "drained events are kept");
        let wakings = events.iter().filter(|event| shown(&dat, event).contains("sched_waking: comm=sleeper"));
        assert!(wakings.count() >= 40, "{} events", events.len());
        assert_same(&dat, &events, &trace_cmd(&["report", "-t", "-i"], &path));
    }

    #[test]
    fn reads_version_7_and_rejects_compression() {
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
