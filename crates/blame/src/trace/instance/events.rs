//! What is traced: events, and of which threads; or what the kernel's timerlat tracer tells.

use std::path::Path;

use super::Instance;
use crate::trace::{decode::Decoder, error::TraceError, folder::Folder, format::Format, wanted::Wanted};

impl Instance {
    /// Traces these threads too, where it traces some alone.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn follow(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        follow(&self.folder, thread_ids)
    }

    /// Traces the page faults and wake-ups of these threads alone: those of others say nothing, and fill the rings.
    ///
    /// # Errors
    /// The kernel refuses a filter.
    pub fn only_of(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        self.only_faults_of(thread_ids)?;
        self.filter("sched:sched_waking", "pid", thread_ids)
    }

    /// Traces the page faults of these threads alone.
    ///
    /// # Errors
    /// The kernel refuses a filter.
    pub fn only_faults_of(&self, thread_ids: &[u32]) -> Result<(), TraceError> {
        self.filter("exceptions:", "common_pid", thread_ids)
    }

    /// Filters events whose names begin like this: one of their fields must be one of these numbers.
    fn filter(&self, events: &str, field: &str, numbers: &[u32]) -> Result<(), TraceError> {
        let terms: Vec<String> = numbers.iter().map(|number| format!("{field} == {number}")).collect();
        self.events.iter().filter(|event| event.starts_with(events)).try_for_each(|event| {
            self.folder.at.write(format!("events/{}/filter", event.replace(':', "/")), &terms.join(" || "))
        })
    }
}

/// Adds threads to those that events are traced of. To truncate the file, as opening it for writing usually does, would
/// forget the others.
pub(super) fn follow(folder: &Folder, thread_ids: &[u32]) -> Result<(), TraceError> {
    // The kernel takes a page at a time, and cuts a number at its end in two.
    thread_ids.chunks(256).try_for_each(|ids| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        folder.at.write("set_event_pid", &ids.join(" "))
    })
}

/// Turns on what is wanted and there; the decoder learns it.
pub(super) fn enable_events<'a>(
    folder: &Folder,
    wanted: impl Iterator<Item = &'a Wanted>,
    decoder: &mut Decoder,
) -> Result<Vec<String>, TraceError> {
    let mut on = Vec::new();
    for wanted in wanted {
        let existing = folder.at.list(Path::new("events").join(wanted.system));
        for name in wanted.names(&existing) {
            let part = format!("events/{}/{name}", wanted.system);
            let format = Format::parse(&folder.at.read(format!("{part}/format"))?);
            if format.is_some_and(|format| decoder.learn(wanted.system, &format)) {
                folder.at.write(format!("{part}/enable"), "1")?;
                on.push(format!("{}:{name}", wanted.system));
            }
        }
    }
    Ok(on)
}

/// Starts the tracer, which the kernel allows only as long as nobody has the rings open. It has no event that could be
/// turned on.
pub(super) fn run_timerlat(folder: &Folder, decoder: &mut Decoder) -> Result<Vec<String>, TraceError> {
    const FORMAT: &str = "events/ftrace/timerlat/format";
    let text = folder.at.read(FORMAT).or_else(|_| folder.tracefs.read(FORMAT))?;
    if !Format::parse(&text).is_some_and(|format| decoder.learn("ftrace", &format)) {
        return Err(TraceError::Format { what: FORMAT.to_owned() });
    }
    folder.at.write("current_tracer", "timerlat")?;
    Ok(vec!["ftrace:timerlat".to_owned()])
}
