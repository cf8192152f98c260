//! Callbacks from the JACK server.

use std::{
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Arc, atomic::AtomicU32},
};

use super::library::{Library, RawPort};

/// Maximum frames per call of the processing closure.
const PIECE: usize = 256;

/// The audio processing of a client.
pub trait Process: Send {
    /// Processes one period on the server's real-time thread. Must not allocate, lock or wait.
    fn period(&mut self, period: &mut Period<'_>);
}

/// Notifications from the server, on any thread.
pub trait Events: Send + Sync {
    /// An xrun occurred: a period was late and audio was lost.
    fn xrun(&self);
    /// The server's sample rate, Hz. Also called once at the start.
    fn rate(&self, rate_hz: u32);
    /// The server has shut down or disconnected the client.
    fn ended(&self);
    /// [`Process::period`] panicked and is no longer called.
    fn panicked(&self);
}

/// The buffers of one period.
pub struct Period<'a> {
    frames: usize,
    input: *const f32,
    outputs: [*mut f32; 2],
    now: PhantomData<&'a mut f32>,
}

impl Period<'_> {
    /// The frames in the period.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Computes both outputs from the input, in pieces of at most 256 frames.
    pub fn play(&mut self, mut make: impl FnMut(&[f32], &mut [f32], &mut [f32])) {
        let (mut input, mut left, mut right) = ([0.0; PIECE], [0.0; PIECE], [0.0; PIECE]);
        for at in (0..self.frames).step_by(PIECE) {
            let count = PIECE.min(self.frames - at);
            if !self.input.is_null() {
                // SAFETY: the server's buffer covers all frames of the period; `ptr::copy` because it may also be an
                // output buffer.
                unsafe { ptr::copy(self.input.add(at), input.as_mut_ptr(), count) };
            }
            make(&input[..count], &mut left[..count], &mut right[..count]);
            for (output, made) in self.outputs.iter().zip([&left, &right]) {
                if !output.is_null() {
                    // SAFETY: an output's buffer covers all frames of the period and is ours to write until the period
                    // ends.
                    unsafe { ptr::copy(made.as_ptr(), output.add(at), count) };
                }
            }
        }
    }
}

/// The data passed to each callback.
pub struct Callbacks {
    pub library: &'static Library,
    pub input: *mut RawPort,
    pub outputs: [*mut RawPort; 2],
    /// Accessed only by the real-time thread.
    pub process: UnsafeCell<Box<dyn Process>>,
    pub events: Arc<dyn Events>,
    /// Delay of the outputs caused by processing, frames.
    pub delay: Arc<AtomicU32>,
}

/// # Safety
/// `callbacks` points to [`Callbacks`] that exist until the client is closed, and only one thread calls this.
pub unsafe extern "C" fn on_period(frames: u32, callbacks: *mut c_void) -> c_int {
    // SAFETY: guaranteed by the caller.
    let callbacks: &Callbacks = unsafe { &*callbacks.cast() };
    // SAFETY: the port is our own, and the callback runs within a period.
    let buffer = |port| unsafe { (callbacks.library.port_buffer)(port, frames) }.cast::<f32>();
    let mut period = Period {
        frames: frames as usize,
        input: buffer(callbacks.input),
        outputs: callbacks.outputs.map(buffer),
        now: PhantomData,
    };
    // SAFETY: no other thread accesses it.
    let process = unsafe { &mut *callbacks.process.get() };
    // A panic must not cross into the library.
    if catch_unwind(AssertUnwindSafe(|| process.period(&mut period))).is_err() {
        callbacks.events.panicked();
        return -1;
    }
    0
}

/// # Safety
/// `callbacks` points to [`Callbacks`] that exist until the client is closed.
pub unsafe extern "C" fn on_xrun(callbacks: *mut c_void) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { &*callbacks.cast::<Callbacks>() }.events.xrun();
    0
}

/// # Safety
/// `callbacks` points to [`Callbacks`] that exist until the client is closed.
pub unsafe extern "C" fn on_rate(rate_hz: u32, callbacks: *mut c_void) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { &*callbacks.cast::<Callbacks>() }.events.rate(rate_hz);
    0
}

/// # Safety
/// `callbacks` points to [`Callbacks`] that exist until the client is closed.
pub unsafe extern "C" fn on_end(callbacks: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    unsafe { &*callbacks.cast::<Callbacks>() }.events.ended();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_in_pieces_even_if_input_and_output_share_memory() {
        for frames in [0, 1, PIECE, PIECE + 1, 1000] {
            let mut shared: Vec<f32> = (0..frames).map(|n| n as f32).collect();
            let mut right = vec![0.0; frames];
            let input = shared.as_mut_ptr();
            let mut period = Period { frames, input, outputs: [input, right.as_mut_ptr()], now: PhantomData };
            let mut pieces = Vec::new();
            period.play(|input, left, right| {
                pieces.push(input.len());
                left.iter_mut().zip(input).for_each(|(left, input)| *left = 2.0 * input);
                right.iter_mut().zip(input).for_each(|(right, input)| *right = -input);
            });
            assert_eq!(pieces.iter().sum::<usize>(), frames);
            assert!(pieces.iter().all(|&piece| piece <= PIECE));
            assert!((0..frames).all(|n| shared[n] == 2.0 * n as f32 && right[n] == -(n as f32)));
        }
    }

    #[test]
    fn missing_buffers_read_as_silence_and_ignore_writes() {
        let mut right = [1.0; 5];
        let outputs = [ptr::null_mut(), right.as_mut_ptr()];
        let mut period = Period { frames: 5, input: ptr::null(), outputs, now: PhantomData };
        period.play(|input, _, right| right.copy_from_slice(input));
        assert_eq!(right, [0.0; 5]);
    }
}
