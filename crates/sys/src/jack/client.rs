//! A JACK client and its ports.

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

/// `JackNoStartServer`: the library must not start a server; that is left to the user.
const NO_START_SERVER: c_int = 0x01;
/// `JackServerName`: the server name follows as an additional argument.
const SERVER_NAME: c_int = 0x04;
/// `JackServerFailed`, `JackServerError`: there is no server, or it does not respond.
const NO_SERVER: c_int = 0x10 | 0x20;
/// `JackPortIsInput`, `JackPortIsOutput`, `JackPortIsPhysical`.
const IS_INPUT: c_ulong = 1;
const IS_OUTPUT: c_ulong = 2;
const IS_PHYSICAL: c_ulong = 4;
/// `JACK_DEFAULT_AUDIO_TYPE`.
const AUDIO: &CStr = c"32 bit float mono audio";

/// The direction of a port as JACK defines it: a capture channel of a card is an output port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The port receives audio.
    Input,
    /// The port provides audio.
    Output,
}

/// A client with the ports `in`, `left` and `right`. Closed on drop.
pub struct Client {
    library: &'static Library,
    raw: NonNull<RawClient>,
    input: *mut RawPort,
    outputs: [*mut RawPort; 2],
    /// Delay of the outputs caused by processing, frames.
    delay: Arc<AtomicU32>,
    /// Set once the client is active; freed after the client is closed.
    callbacks: Option<NonNull<Callbacks>>,
}

// SAFETY: JACK's functions may be called from any thread, and the pointed-to callbacks are Send.
unsafe impl Send for Client {}

impl Client {
    /// Connects to a running server: the one of this name, that of `JACK_DEFAULT_SERVER`, or the default one. If the
    /// client name is in use, the server makes it unique.
    ///
    /// # Errors
    /// [`JackError`].
    pub fn open(name: &str, server: Option<&str>) -> Result<Self, JackError> {
        let library = Library::load()?;
        let (name, server) = (text(name), server.map(text));
        let mut status = 0;
        // SAFETY: the strings end in NUL and are copied; the server name is passed exactly if SERVER_NAME is set.
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
        // SAFETY: the client is open; the strings end in NUL and are copied.
        let port = unsafe { (self.library.port_register)(self.raw.as_ptr(), name.as_ptr(), AUDIO.as_ptr(), flags, 0) };
        if port.is_null() { Err(JackError::Ports) } else { Ok(port) }
    }

    /// The client name that the server assigned.
    #[must_use]
    pub fn name(&self) -> String {
        // SAFETY: the client is open, and the name string exists as long as the client.
        owned(unsafe { (self.library.client_name)(self.raw.as_ptr()) })
    }

    /// The server's sample rate, Hz.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        // SAFETY: the client is open.
        unsafe { (self.library.sample_rate)(self.raw.as_ptr()) }
    }

    /// The server's current period length, frames.
    #[must_use]
    pub fn period_frames(&self) -> u32 {
        // SAFETY: the client is open.
        unsafe { (self.library.buffer_size)(self.raw.as_ptr()) }
    }

    /// The names of all audio ports of a direction, or only those of sound cards if `of_cards`.
    #[must_use]
    pub fn ports(&self, direction: Direction, of_cards: bool) -> Vec<String> {
        let flags = if direction == Direction::Input { IS_INPUT } else { IS_OUTPUT };
        let flags = if of_cards { flags | IS_PHYSICAL } else { flags };
        // SAFETY: the client is open; a null name pattern matches all names, and the type string ends in NUL.
        let list = unsafe { (self.library.ports)(self.raw.as_ptr(), ptr::null(), AUDIO.as_ptr(), flags) };
        if list.is_null() {
            return Vec::new();
        }
        // SAFETY: the list is not null (checked above) and ends with a null pointer, where the iteration stops.
        let names = (0..).map(|n| unsafe { *list.add(n) }).take_while(|name| !name.is_null()).map(owned).collect();
        // SAFETY: the list is ours to free with this function, and its strings have been copied.
        unsafe { (self.library.free)(list.cast()) };
        names
    }

    /// The names of the client's ports: input, left, right.
    #[must_use]
    pub fn own_ports(&self) -> [String; 3] {
        // SAFETY: the ports and their names exist as long as the client.
        [self.input, self.outputs[0], self.outputs[1]].map(|port| owned(unsafe { (self.library.port_name)(port) }))
    }

    /// Connects an output to an input. Does nothing if they are already connected.
    ///
    /// # Errors
    /// [`JackError::Connect`].
    pub fn connect(&self, from: &str, to: &str) -> Result<(), JackError> {
        let (source, destination) = (text(from), text(to));
        // SAFETY: the client is open; the strings end in NUL.
        match unsafe { (self.library.connect)(self.raw.as_ptr(), source.as_ptr(), destination.as_ptr()) } {
            0 | libc::EEXIST => Ok(()),
            _ => Err(JackError::Connect { from: from.to_owned(), to: to.to_owned() }),
        }
    }

    /// The largest latency from a card's input through this client to a card's output, frames, as the server reports it
    /// for the current connections.
    #[must_use]
    pub fn latency_frames(&self) -> u32 {
        let latency = |port, mode| latency::of(self.library, port, mode).most;
        let out = self.outputs.map(|port| latency(port, PLAYBACK));
        latency(self.input, CAPTURE).saturating_add(out[0].max(out[1]))
    }

    /// True if something is connected to the input and to an output.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        // SAFETY: the ports are our own.
        let is_connected = |port: &*mut RawPort| unsafe { (self.library.port_connected)(*port) > 0 };
        is_connected(&self.input) && self.outputs.iter().any(is_connected)
    }

    /// Sets the frames by which processing delays the outputs. On a change the server recomputes all latencies. May
    /// block; must not be called on the server's thread.
    pub fn set_delay(&self, frames: u32) {
        if self.delay.swap(frames, Relaxed) != frames && self.callbacks.is_some() {
            // SAFETY: the client is open; a server that has gone returns an error and reports its end through the
            // callback.
            unsafe { (self.library.recompute_latencies)(self.raw.as_ptr()) };
        }
    }

    /// Starts processing: from now on the server calls `process` each period, and `events` when something happens.
    ///
    /// # Errors
    /// [`JackError::Activate`], also if the client is already active.
    pub fn activate(&mut self, process: Box<dyn Process>, events: Arc<dyn Events>) -> Result<(), JackError> {
        if self.callbacks.is_some() {
            return Err(JackError::Activate);
        }
        let (library, raw) = (self.library, self.raw.as_ptr());
        let (input, outputs, delay) = (self.input, self.outputs, self.delay.clone());
        let callbacks = Callbacks { library, input, outputs, process: UnsafeCell::new(process), events, delay };
        let callbacks = NonNull::from(Box::leak(Box::new(callbacks)));
        self.callbacks = Some(callbacks);
        let data = callbacks.as_ptr().cast();
        // SAFETY: the client is open and not yet active; the callback data exists until the client is closed.
        let refused = unsafe {
            (library.on_end)(raw, on_end, data);
            (library.on_period)(raw, on_period, data) != 0
                || (library.on_xrun)(raw, on_xrun, data) != 0
                || (library.on_rate)(raw, on_rate, data) != 0
                || (library.on_latency)(raw, on_latency, data) != 0
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
        // SAFETY: the client is open and not used afterwards; the server makes no callbacks after closing.
        unsafe { (self.library.client_close)(self.raw.as_ptr()) };
        if let Some(callbacks) = self.callbacks {
            // SAFETY: the pointer came from a Box, and the server no longer uses it.
            drop(unsafe { Box::from_raw(callbacks.as_ptr()) });
        }
    }
}

/// Converts to a C string; drops everything from the first NUL on.
fn text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the pointer is not null, the string ends in NUL and is copied at once.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
