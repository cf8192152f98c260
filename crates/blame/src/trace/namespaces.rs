//! Checks that the ids and times in the trace are those that this process sees.

use std::{fs, path::Path};

use super::error::TraceError;

/// The first namespace of process ids, that of the host (`PROC_PID_INIT_INO` in the kernel's `proc_ns.h`).
const HOST_IDS: &str = "pid:[4026531836]";

/// Checks the namespaces of a process, from its folder in `/proc`. A part that the kernel does not show is not checked.
///
/// # Errors
/// The process has other ids or times than the host, which are those of the trace.
pub(super) fn check(process: &Path) -> Result<(), TraceError> {
    if fs::read_link(process.join("ns/pid")).is_ok_and(|namespace| namespace != Path::new(HOST_IDS)) {
        return Err(TraceError::OtherIds);
    }
    // Lines `CLOCK SECONDS NANOSECONDS`.
    let offsets = fs::read_to_string(process.join("timens_offsets")).unwrap_or_default();
    let is_offset = |line: &str| line.split_whitespace().skip(1).any(|number| number != "0");
    if offsets.lines().any(is_offset) { Err(TraceError::OtherTimes) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_trace_is_that_of_the_host() {
        let process = tempfile::tempdir().unwrap();
        let path = process.path();
        assert!(check(path).is_ok(), "an old kernel");
        fs::create_dir(path.join("ns")).unwrap();
        symlink("pid:[4026532165]", path.join("ns/pid")).unwrap();
        assert!(matches!(check(path), Err(TraceError::OtherIds)));
        fs::remove_file(path.join("ns/pid")).unwrap();
        symlink(HOST_IDS, path.join("ns/pid")).unwrap();
        fs::write(path.join("timens_offsets"), "monotonic           0         0\nboottime            0         0\n")
            .unwrap();
        assert!(check(path).is_ok());
        fs::write(path.join("timens_offsets"), "monotonic        1000         0\nboottime            0         0\n")
            .unwrap();
        assert!(matches!(check(path), Err(TraceError::OtherTimes)));
    }
}
