//! Enables events, filters and the timerlat tracer.

use std::path::Path;

use sys::syscall::WAITING;

use crate::trace::{
    decode::{Decoder, MARKS},
    error::TraceError,
    folder::Folder,
    format::Format,
    selectors::EventSelector,
};

/// Filters the events whose names start with `prefix`: `field` must be one of these numbers.
pub(super) fn filter(
    folder: &Folder,
    events: &[String],
    prefix: &str,
    field: &str,
    numbers: &[u32],
) -> Result<(), TraceError> {
    let terms: Vec<String> = numbers.iter().map(|number| format!("{field} == {number}")).collect();
    let condition = terms.join(" || ");
    events
        .iter()
        .filter(|event| event.starts_with(prefix))
        .try_for_each(|event| folder.files.write(format!("events/{}/filter", event.replace(':', "/")), &condition))
}

/// Traces only the system calls that can wait.
pub(super) fn filter_calls(folder: &Folder) -> Result<(), TraceError> {
    let terms: Vec<String> = WAITING.iter().map(|call| format!("id == {}", call.number)).collect();
    let condition = terms.join(" || ");
    let existing = folder.files.list("events/raw_syscalls");
    existing
        .iter()
        .filter(|name| name.starts_with("sys_"))
        .try_for_each(|name| folder.files.write(format!("events/raw_syscalls/{name}/filter"), &condition))
}

/// Adds to the traced threads. Must not truncate the file, because truncating removes the threads added before.
pub(super) fn follow(folder: &Folder, thread_ids: &[u32]) -> Result<(), TraceError> {
    // The kernel reads one page at a time and would split a number at its end.
    thread_ids.chunks(256).try_for_each(|ids| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        folder.files.write("set_event_pid", &ids.join(" "))
    })
}

/// Enables the selected events that exist and adds their formats to the decoder.
pub(super) fn enable_events<'a>(
    folder: &Folder,
    wanted: impl Iterator<Item = &'a EventSelector>,
    decoder: &mut Decoder,
) -> Result<Vec<String>, TraceError> {
    let mut on = Vec::new();
    for wanted in wanted {
        let existing = folder.files.list(Path::new("events").join(wanted.system));
        for name in wanted.names(&existing) {
            let part = format!("events/{}/{name}", wanted.system);
            let format = Format::parse(&folder.files.read(format!("{part}/format"))?);
            if format.is_some_and(|format| decoder.add_format(wanted.system, &format)) {
                folder.files.write(format!("{part}/enable"), "1")?;
                on.push(format!("{}:{name}", wanted.system));
            }
        }
    }
    Ok(on)
}

/// Enables the event of a probe at a mark and adds its format to the decoder.
pub(super) fn enable_mark(folder: &Folder, group: &str, name: &str, decoder: &mut Decoder) -> Result<(), TraceError> {
    let part = format!("events/{group}/{name}");
    let format = Format::parse(&folder.files.read(format!("{part}/format"))?);
    if !format.is_some_and(|format| decoder.add_format(MARKS, &format)) {
        return Err(TraceError::Format { part });
    }
    folder.files.write(format!("{part}/enable"), "1")
}

/// Starts the timerlat tracer. The kernel refuses this while the rings are open. The tracer writes samples without an
/// event to enable.
pub(super) fn run_timerlat(folder: &Folder, decoder: &mut Decoder) -> Result<Vec<String>, TraceError> {
    const FORMAT: &str = "events/ftrace/timerlat/format";
    let text = folder.files.read(FORMAT).or_else(|_| folder.tracefs.read(FORMAT))?;
    if !Format::parse(&text).is_some_and(|format| decoder.add_format("ftrace", &format)) {
        return Err(TraceError::Format { part: FORMAT.to_owned() });
    }
    folder.files.write("current_tracer", "timerlat")?;
    Ok(vec!["ftrace:timerlat".to_owned()])
}
