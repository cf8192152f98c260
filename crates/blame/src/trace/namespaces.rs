//! Checks that the ids and times in the trace are those that this process sees.

use machine::{Root, pid_namespace};

use super::error::TraceError;

/// Checks the namespaces of this process. What the kernel does not show is not checked.
///
/// # Errors
/// This process has other ids or times than the host, which are those of the trace.
pub(super) fn check(root: &Root) -> Result<(), TraceError> {
    if pid_namespace::is_first(root) == Some(false) {
        return Err(TraceError::OtherIds);
    }
    // Lines `CLOCK SECONDS NANOSECONDS`.
    let offsets = root.read("proc/self/timens_offsets").unwrap_or_default();
    let is_offset = |line: &str| line.split_whitespace().skip(1).any(|number| number != "0");
    if offsets.lines().any(is_offset) { Err(TraceError::OtherTimes) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn the_trace_is_that_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert!(check(&root).is_ok(), "an old kernel");
        fs::create_dir_all(root.path("proc/self/ns")).unwrap();
        symlink("pid:[4026532165]", root.path("proc/self/ns/pid")).unwrap();
        assert!(matches!(check(&root), Err(TraceError::OtherIds)));
        fs::remove_file(root.path("proc/self/ns/pid")).unwrap();
        symlink("pid:[4026531836]", root.path("proc/self/ns/pid")).unwrap();
        let offsets = |seconds| format!("monotonic        {seconds}         0\nboottime            0         0\n");
        fs::write(root.path("proc/self/timens_offsets"), offsets(0)).unwrap();
        assert!(check(&root).is_ok());
        fs::write(root.path("proc/self/timens_offsets"), offsets(1000)).unwrap();
        assert!(matches!(check(&root), Err(TraceError::OtherTimes)));
    }
}
