//! What the server is told of latencies: what passes through a client is as late as where it comes from, and by the client's own
//! delay besides; towards the playing end likewise.

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

/// The latency of a port, as the server has it.
pub fn of(library: &Library, port: *mut RawPort, mode: c_int) -> Range {
    let mut range = Range::default();
    // SAFETY: one of our ports, and a place for the answer.
    unsafe { (library.port_latency)(port, mode, &raw mut range) };
    range
}

/// All these ways, later by so many frames.
fn through(ways: impl IntoIterator<Item = Range>, delay: u32) -> Range {
    let join = |one: Range, other: Range| Range { least: one.least.min(other.least), most: one.most.max(other.most) };
    let Range { least, most } = ways.into_iter().reduce(join).unwrap_or_default();
    // A cable from our output to our input adds it once more each time that is asked.
    Range { least: least.saturating_add(delay), most: most.saturating_add(delay) }
}

/// # Safety
/// `callbacks` are [`Callbacks`] that stay until the client is closed.
pub unsafe extern "C" fn on_latency(mode: c_int, callbacks: *mut c_void) {
    // SAFETY: as the caller promises.
    let Callbacks { library, input, outputs, delay, .. } = unsafe { &*callbacks.cast::<Callbacks>() };
    let delay = delay.load(Relaxed);
    // SAFETY: one of our ports. What leads nowhere has no latency, and would count as none.
    let is_connected = |port: &*mut RawPort| unsafe { (library.port_connected)(*port) > 0 };
    let tell = |port, mut range: Range| {
        // SAFETY: one of our ports, and a range that is read at once; this is the callback in which that is asked for.
        unsafe { (library.set_port_latency)(port, mode, &raw mut range) };
    };
    match mode {
        CAPTURE => {
            let range = through([of(library, *input, mode)], delay);
            outputs.iter().for_each(|output| tell(*output, range));
        }
        _ => {
            let connected = outputs.iter().filter(|output| is_connected(output));
            tell(*input, through(connected.map(|output| of(library, *output, mode)), delay));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_joined_and_later_by_the_delay() {
        let range = |least, most| Range { least, most };
        assert_eq!(through([], 7), range(7, 7));
        assert_eq!(through([range(256, 300)], 0), range(256, 300));
        assert_eq!(through([range(256, 300), range(128, 512)], 54), range(182, 566));
        assert_eq!(through([range(5, u32::MAX - 5)], 10), range(15, u32::MAX));
    }
}
