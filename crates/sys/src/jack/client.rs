//! A client and its ports.

use std::{
    cell::UnsafeCell,
    ffi::{CStr, CString, c_char, c_int, c_ulong},
    fmt,
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use super::{
    JackError,
    callbacks::{Callbacks, Events, Process, on_end, on_period, on_rate, on_xrun},
    latency::{self, CAPTURE, PLAYBACK, on_latency},
    library::{Library, RawClient, RawPort},
};

/// `JackNoStartServer`: a server is the user's to start.
const NO_START_SERVER: c_int = 0x01;
/// `JackServerName`: the name follows the other arguments.
const SERVER_NAME: c_int = 0x04;
/// `JackServerFailed`, `JackServerError`: nobody is there, or nobody speaks.
const NO_SERVER: c_int = 0x10 | 0x20;
/// `JackPortIsInput`, `JackPortIsOutput`, `JackPortIsPhysical`.
const IS_INPUT: c_ulong = 1;
const IS_OUTPUT: c_ulong = 2;
const IS_PHYSICAL: c_ulong = 4;
/// `JACK_DEFAULT_AUDIO_TYPE`.
const AUDIO: &CStr = c"32 bit float mono audio";

/// What a port does, as JACK sees it: what captures is an output of the card's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It takes sound.
    Input,
    /// It gives sound.
    Output,
}

/// A client with the ports `in`, `left` and `right`. It is closed when this is dropped.
pub struct Client {
    library: &'static Library,
    raw: NonNull<RawClient>,
    input: *mut RawPort,
    outputs: [*mut RawPort; 2],
    /// Frames by which the outputs are later than the input by what the client does.
    delay: Arc<AtomicU32>,
    /// Once it is active; ours again when the client is closed.
    callbacks: Option<NonNull<Callbacks>>,
}

// SAFETY: JACK's functions may be called from any thread, and what `callbacks` points to may be sent to another.
unsafe impl Send for Client {}

impl Client {
    /// Joins a server that runs: the one of this name, or that of `JACK_DEFAULT_SERVER`, or the usual one. Where another client
    /// has the name, the server adds to ours.
    ///
    /// # Errors
    /// [`JackError`].
    pub fn open(name: &str, server: Option<&str>) -> Result<Self, JackError> {
        let library = Library::load()?;
        let (name, server) = (text(name), server.map(text));
        let mut status = 0;
        // SAFETY: the texts end with a zero and are copied; the server's name is asked for where it is given.
        let raw = unsafe {
            match &server {
                None => (library.client_open)(name.as_ptr(), NO_START_SERVER, &raw mut status),
                Some(server) => {
                    let options = NO_START_SERVER | SERVER_NAME;
                    (library.client_open)(name.as_ptr(), options, &raw mut status, server.as_ptr())
                }
            }
        };
        let Some(raw) = NonNull::new(raw) else {
            return Err(if status & NO_SERVER != 0 { JackError::NoServer } else { JackError::Refused(status) });
        };
        let (input, outputs) = (ptr::null_mut(), [ptr::null_mut(); 2]);
        let mut client = Self { library, raw, input, outputs, delay: Arc::default(), callbacks: None };
        client.input = client.register(c"in", IS_INPUT)?;
        client.outputs = [client.register(c"left", IS_OUTPUT)?, client.register(c"right", IS_OUTPUT)?];
        Ok(client)
    }

    fn register(&self, name: &CStr, flags: c_ulong) -> Result<*mut RawPort, JackError> {
        // SAFETY: the client is open; the texts end with a zero and are copied.
        let port = unsafe { (self.library.port_register)(self.raw.as_ptr(), name.as_ptr(), AUDIO.as_ptr(), flags, 0) };
        if port.is_null() { Err(JackError::Ports) } else { Ok(port) }
    }

    /// Its name, as the server has it.
    #[must_use]
    pub fn name(&self) -> String {
        // SAFETY: the client is open, and its name a text that stays with it.
        owned(unsafe { (self.library.client_name)(self.raw.as_ptr()) })
    }

    /// The server's sample rate, Hz.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        // SAFETY: the client is open.
        unsafe { (self.library.sample_rate)(self.raw.as_ptr()) }
    }

    /// Frames of the server's periods, as they are now.
    #[must_use]
    pub fn period_frames(&self) -> u32 {
        // SAFETY: the client is open.
        unsafe { (self.library.buffer_size)(self.raw.as_ptr()) }
    }

    /// Names of all ports for sound of a direction; those of cards alone, where `of_cards`.
    #[must_use]
    pub fn ports(&self, direction: Direction, of_cards: bool) -> Vec<String> {
        let flags = if direction == Direction::Input { IS_INPUT } else { IS_OUTPUT };
        let flags = if of_cards { flags | IS_PHYSICAL } else { flags };
        // SAFETY: the client is open; no name is asked for, and the kind's text ends with a zero.
        let list = unsafe { (self.library.ports)(self.raw.as_ptr(), ptr::null(), AUDIO.as_ptr(), flags) };
        if list.is_null() {
            return Vec::new();
        }
        // SAFETY: a list of texts, with null at its end.
        let names = (0..).map(|n| unsafe { *list.add(n) }).take_while(|name| !name.is_null()).map(owned).collect();
        // SAFETY: the list is ours to free, by this function; its texts have been copied.
        unsafe { (self.library.free)(list.cast()) };
        names
    }

    /// Names of its own ports: input, left, right.
    #[must_use]
    pub fn own_ports(&self) -> [String; 3] {
        // SAFETY: the ports live as long as the client, and so do their names.
        [self.input, self.outputs[0], self.outputs[1]].map(|port| owned(unsafe { (self.library.port_name)(port) }))
    }

    /// Connects an output to an input, if it is not yet.
    ///
    /// # Errors
    /// [`JackError::Connect`].
    pub fn connect(&self, from: &str, to: &str) -> Result<(), JackError> {
        let (source, destination) = (text(from), text(to));
        // SAFETY: the client is open; the texts end with a zero.
        match unsafe { (self.library.connect)(self.raw.as_ptr(), source.as_ptr(), destination.as_ptr()) } {
            0 | libc::EEXIST => Ok(()),
            _ => Err(JackError::Connect { from: from.to_owned(), to: to.to_owned() }),
        }
    }

    /// Frames from a card's input to its output, by way of this client, as the server tells for what is connected now: the
    /// longest way in, and the longest way out.
    #[must_use]
    pub fn latency_frames(&self) -> u32 {
        let latency = |port, mode| latency::of(self.library, port, mode).most;
        let out = self.outputs.map(|port| latency(port, PLAYBACK));
        latency(self.input, CAPTURE).saturating_add(out[0].max(out[1]))
    }

    /// Tells the server by how many frames the outputs are later than the input by what the client does, where that has
    /// changed: it asks all clients for their latencies anew. For threads that may wait, and not for the server's.
    pub fn tell_delay(&self, frames: u32) {
        if self.delay.swap(frames, Relaxed) != frames && self.callbacks.is_some() {
            // SAFETY: the client is open. A server that is gone refuses, and tells its end in another way.
            unsafe { (self.library.recompute_latencies)(self.raw.as_ptr()) };
        }
    }

    /// Begins: from now on the server calls both.
    ///
    /// # Errors
    /// [`JackError::Activate`], also when it has begun before.
    pub fn activate(&mut self, process: Box<dyn Process>, events: Arc<dyn Events>) -> Result<(), JackError> {
        if self.callbacks.is_some() {
            return Err(JackError::Activate);
        }
        let (library, raw) = (self.library, self.raw.as_ptr());
        let (input, outputs, delay) = (self.input, self.outputs, self.delay.clone());
        let callbacks = Callbacks { library, input, outputs, process: UnsafeCell::new(process), events, delay };
        let callbacks = NonNull::from(Box::leak(Box::new(callbacks)));
        self.callbacks = Some(callbacks);
        let told = callbacks.as_ptr().cast();
        // SAFETY: the client is open and not yet active; what the functions get stays until the client is closed.
        let refused = unsafe {
            (library.on_end)(raw, on_end, told);
            (library.on_period)(raw, on_period, told) != 0
                || (library.on_xrun)(raw, on_xrun, told) != 0
                || (library.on_rate)(raw, on_rate, told) != 0
                || (library.on_latency)(raw, on_latency, told) != 0
                || (library.activate)(raw) != 0
        };
        if refused { Err(JackError::Activate) } else { Ok(()) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the client is open, and nobody uses it after this; once it is closed the server calls nothing any more.
        unsafe { (self.library.client_close)(self.raw.as_ptr()) };
        if let Some(callbacks) = self.callbacks {
            // SAFETY: it came from a box, and whoever else had it is gone.
            drop(unsafe { Box::from_raw(callbacks.as_ptr()) });
        }
    }
}

/// A text for C: what stands behind a zero is left out.
fn text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, ends with a zero, and is copied at once.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
