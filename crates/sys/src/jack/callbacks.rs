//! What the server calls.

use std::{
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Arc, atomic::AtomicU32},
};

use super::library::{Library, RawPort};

/// Most frames that are handed on at a time.
const PIECE: usize = 256;

/// What a client plays.
pub trait Process: Send {
    /// A period, on the server's real-time thread: neither allocates, locks nor waits.
    fn period(&mut self, period: &mut Period<'_>);
}

/// What befalls a client, told from any thread.
pub trait Events: Send + Sync {
    /// Something was late, and sound is missing.
    fn xrun(&self);
    /// The server runs at this rate, Hz; told also at the beginning.
    fn rate(&self, rate_hz: u32);
    /// The server has ended, or wants us no more.
    fn ended(&self);
    /// [`Process::period`] panicked, and is called no more.
    fn panicked(&self);
}

/// A period: what comes in, and what is to go out.
pub struct Period<'a> {
    frames: usize,
    input: *const f32,
    outputs: [*mut f32; 2],
    now: PhantomData<&'a mut f32>,
}

impl Period<'_> {
    /// Its frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Makes both outputs from the input, in pieces.
    pub fn play(&mut self, mut make: impl FnMut(&[f32], &mut [f32], &mut [f32])) {
        let (mut input, mut left, mut right) = ([0.0; PIECE], [0.0; PIECE], [0.0; PIECE]);
        for at in (0..self.frames).step_by(PIECE) {
            let count = PIECE.min(self.frames - at);
            if !self.input.is_null() {
                // SAFETY: the server's buffer holds all frames of the period, and `at + count` is within them. It is copied
                // because it may be the same memory as an output.
                unsafe { ptr::copy(self.input.add(at), input.as_mut_ptr(), count) };
            }
            make(&input[..count], &mut left[..count], &mut right[..count]);
            for (output, made) in self.outputs.iter().zip([&left, &right]) {
                if !output.is_null() {
                    // SAFETY: as above; an output's buffer is ours to write until the period is over.
                    unsafe { ptr::copy(made.as_ptr(), output.add(at), count) };
                }
            }
        }
    }
}

/// What the server is given with its callbacks.
pub struct Callbacks {
    pub library: &'static Library,
    pub input: *mut RawPort,
    pub outputs: [*mut RawPort; 2],
    /// For the real-time thread alone.
    pub process: UnsafeCell<Box<dyn Process>>,
    pub events: Arc<dyn Events>,
    /// Frames by which the outputs are later than the input.
    pub delay: Arc<AtomicU32>,
}

/// # Safety
/// `callbacks` are [`Callbacks`] that stay until the client is closed, and only one thread calls this.
pub unsafe extern "C" fn on_period(frames: u32, callbacks: *mut c_void) -> c_int {
    // SAFETY: as the caller promises.
    let callbacks: &Callbacks = unsafe { &*callbacks.cast() };
    // SAFETY: one of our own ports, within a period.
    let buffer = |port| unsafe { (callbacks.library.port_buffer)(port, frames) }.cast::<f32>();
    let mut period = Period {
        frames: frames as usize,
        input: buffer(callbacks.input),
        outputs: callbacks.outputs.map(buffer),
        now: PhantomData,
    };
    // SAFETY: no other thread looks at it.
    let process = unsafe { &mut *callbacks.process.get() };
    // A panic must not cross into the library.
    if catch_unwind(AssertUnwindSafe(|| process.period(&mut period))).is_err() {
        callbacks.events.panicked();
        return -1;
    }
    0
}

/// # Safety
/// `callbacks` are [`Callbacks`] that stay until the client is closed.
pub unsafe extern "C" fn on_xrun(callbacks: *mut c_void) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { &*callbacks.cast::<Callbacks>() }.events.xrun();
    0
}

/// # Safety
/// `callbacks` are [`Callbacks`] that stay until the client is closed.
pub unsafe extern "C" fn on_rate(rate_hz: u32, callbacks: *mut c_void) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { &*callbacks.cast::<Callbacks>() }.events.rate(rate_hz);
    0
}

/// # Safety
/// `callbacks` are [`Callbacks`] that stay until the client is closed.
pub unsafe extern "C" fn on_end(callbacks: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { &*callbacks.cast::<Callbacks>() }.events.ended();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_goes_through_in_pieces_also_where_input_and_output_are_one_memory() {
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
    fn a_buffer_that_is_not_there_is_silence_and_takes_nothing() {
        let mut right = [1.0; 5];
        let outputs = [ptr::null_mut(), right.as_mut_ptr()];
        let mut period = Period { frames: 5, input: ptr::null(), outputs, now: PhantomData };
        period.play(|input, _, right| right.copy_from_slice(input));
        assert_eq!(right, [0.0; 5]);
    }
}
