//! Loads JACK's library.

use std::{
    ffi::{CStr, c_char, c_int, c_ulong, c_void},
    mem::transmute_copy,
    sync::OnceLock,
};

use super::JackError;

/// The library's file name, the same for all JACK implementations.
const NAME: &CStr = c"libjack.so.0";

/// An opaque client.
#[repr(C)]
pub struct RawClient([u8; 0]);

/// An opaque port.
#[repr(C)]
pub struct RawPort([u8; 0]);

/// The minimum and maximum latency, frames.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    pub least: u32,
    pub most: u32,
}

pub type OnPeriod = unsafe extern "C" fn(u32, *mut c_void) -> c_int;
pub type OnXrun = unsafe extern "C" fn(*mut c_void) -> c_int;
pub type OnEnd = unsafe extern "C" fn(*mut c_void);
pub type OnLatency = unsafe extern "C" fn(c_int, *mut c_void);
type OnText = unsafe extern "C" fn(*const c_char);

/// Declares the library's functions and resolves their symbols.
macro_rules! functions {
    ($($name:ident = $symbol:literal: $kind:ty;)*) => {
        /// The resolved functions of the library.
        pub struct Library {
            $(pub $name: $kind,)*
        }

        impl Library {
            fn of(handle: *mut c_void) -> Result<Self, JackError> {
                Ok(Self {
                    $($name: {
                        const SYMBOL: &CStr = $symbol;
                        // SAFETY: the library is never unloaded, and the symbol name ends in NUL.
                        let address = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) };
                        if address.is_null() {
                            return Err(JackError::OldLibrary(SYMBOL.to_str().unwrap_or_default()));
                        }
                        // SAFETY: the address is a non-null function pointer, and jack/jack.h declares the function
                        // with this type.
                        unsafe { transmute_copy::<*mut c_void, $kind>(&address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    client_open = c"jack_client_open": unsafe extern "C" fn(*const c_char, c_int, *mut c_int, ...) -> *mut RawClient;
    client_close = c"jack_client_close": unsafe extern "C" fn(*mut RawClient) -> c_int;
    client_name = c"jack_get_client_name": unsafe extern "C" fn(*mut RawClient) -> *const c_char;
    sample_rate = c"jack_get_sample_rate": unsafe extern "C" fn(*mut RawClient) -> u32;
    buffer_size = c"jack_get_buffer_size": unsafe extern "C" fn(*mut RawClient) -> u32;
    activate = c"jack_activate": unsafe extern "C" fn(*mut RawClient) -> c_int;
    on_period = c"jack_set_process_callback": unsafe extern "C" fn(*mut RawClient, OnPeriod, *mut c_void) -> c_int;
    on_xrun = c"jack_set_xrun_callback": unsafe extern "C" fn(*mut RawClient, OnXrun, *mut c_void) -> c_int;
    on_rate = c"jack_set_sample_rate_callback": unsafe extern "C" fn(*mut RawClient, OnPeriod, *mut c_void) -> c_int;
    on_latency = c"jack_set_latency_callback": unsafe extern "C" fn(*mut RawClient, OnLatency, *mut c_void) -> c_int;
    on_end = c"jack_on_shutdown": unsafe extern "C" fn(*mut RawClient, OnEnd, *mut c_void);
    port_register = c"jack_port_register":
        unsafe extern "C" fn(*mut RawClient, *const c_char, *const c_char, c_ulong, c_ulong) -> *mut RawPort;
    port_name = c"jack_port_name": unsafe extern "C" fn(*const RawPort) -> *const c_char;
    port_buffer = c"jack_port_get_buffer": unsafe extern "C" fn(*mut RawPort, u32) -> *mut c_void;
    port_latency = c"jack_port_get_latency_range": unsafe extern "C" fn(*mut RawPort, c_int, *mut Range);
    set_port_latency = c"jack_port_set_latency_range": unsafe extern "C" fn(*mut RawPort, c_int, *mut Range);
    port_connected = c"jack_port_connected": unsafe extern "C" fn(*const RawPort) -> c_int;
    recompute_latencies = c"jack_recompute_total_latencies": unsafe extern "C" fn(*mut RawClient) -> c_int;
    ports = c"jack_get_ports":
        unsafe extern "C" fn(*mut RawClient, *const c_char, *const c_char, c_ulong) -> *mut *const c_char;
    connect = c"jack_connect": unsafe extern "C" fn(*mut RawClient, *const c_char, *const c_char) -> c_int;
    free = c"jack_free": unsafe extern "C" fn(*mut c_void);
    on_error = c"jack_set_error_function": unsafe extern "C" fn(OnText);
    on_info = c"jack_set_info_function": unsafe extern "C" fn(OnText);
}

/// Discards messages that the library would print to standard error; our own errors replace them.
unsafe extern "C" fn silence(_text: *const c_char) {}

impl Library {
    /// Loads the library on the first call.
    pub fn load() -> Result<&'static Self, JackError> {
        static LOADED: OnceLock<Result<Library, JackError>> = OnceLock::new();
        if cfg!(target_feature = "crt-static") {
            return Err(JackError::Static);
        }
        LOADED.get_or_init(Self::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Self, JackError> {
        // SAFETY: the name ends in NUL; loading runs the library's initialisers, as linking to it would.
        let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(JackError::NoLibrary(last_error()));
        }
        let library = Self::of(handle)?;
        // SAFETY: the functions accept any callback of this type, and ours exists as long as the program.
        unsafe {
            (library.on_error)(silence);
            (library.on_info)(silence);
        }
        Ok(library)
    }
}

/// The dynamic loader's last error message.
fn last_error() -> String {
    // SAFETY: dlerror returns null or a string that is valid until the thread's next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: the pointer is not null, the string ends in NUL and is copied at once.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_static_programs_cannot_load_libraries() {
        let is_static = matches!(Library::load(), Err(JackError::Static));
        assert_eq!(is_static, cfg!(target_feature = "crt-static"));
    }
}
