//! Reports latencies to the server. The capture latency of the outputs is that of the input plus the client's own
//! delay. The playback latency of the input is that of the outputs plus the delay.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::Ordering::Relaxed,
};

use super::{
    callbacks::Callbacks,
    library::{Library, Range, RawPort},
};

/// `JackCaptureLatency`, `JackPlaybackLatency`.
pub const CAPTURE: c_int = 0;
pub const PLAYBACK: c_int = 1;

/// The latency of a port as the server reports it.
pub fn of(library: &Library, port: *mut RawPort, mode: c_int) -> Range {
    let mut range = Range::default();
    // SAFETY: the port is our own, and `range` is live and writable.
    unsafe { (library.port_latency)(port, mode, &raw mut range) };
    range
}

/// Combines the latencies of parallel paths and adds the client's delay.
fn combine(paths: impl IntoIterator<Item = Range>, delay: u32) -> Range {
    let join = |one: Range, other: Range| Range { least: one.least.min(other.least), most: one.most.max(other.most) };
    let Range { least, most } = paths.into_iter().reduce(join).unwrap_or_default();
    // Saturating, because a feedback connection adds the delay again in each update.
    Range { least: least.saturating_add(delay), most: most.saturating_add(delay) }
}

/// # Safety
/// `callbacks` points to [`Callbacks`] that exist until the client is closed.
pub unsafe extern "C" fn on_latency(mode: c_int, callbacks: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    let Callbacks { library, input, outputs, delay, .. } = unsafe { &*callbacks.cast::<Callbacks>() };
    let delay = delay.load(Relaxed);
    // SAFETY: the port is our own. Unconnected ports are skipped because their latency of 0 would be taken as the
    // minimum.
    let is_connected = |port: &*mut RawPort| unsafe { (library.port_connected)(*port) > 0 };
    let set = |port, mut range: Range| {
        // SAFETY: the port is our own, the range is read at once, and this is the callback in which setting it is
        // allowed.
        unsafe { (library.set_port_latency)(port, mode, &raw mut range) };
    };
    match mode {
        CAPTURE => {
            let range = combine([of(library, *input, mode)], delay);
            outputs.iter().for_each(|output| set(*output, range));
        }
        _ => {
            let connected = outputs.iter().filter(|output| is_connected(output));
            set(*input, combine(connected.map(|output| of(library, *output, mode)), delay));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combines_paths_and_adds_the_delay() {
        let range = |least, most| Range { least, most };
        assert_eq!(combine([], 7), range(7, 7));
        assert_eq!(combine([range(256, 300)], 0), range(256, 300));
        assert_eq!(combine([range(256, 300), range(128, 512)], 54), range(182, 566));
        assert_eq!(combine([range(5, u32::MAX - 5)], 10), range(15, u32::MAX));
    }
}
