//! The C interface of LV2 (`lv2/core/lv2.h`, `urid.h`, `worker.h`, `state.h`, `log.h`).
//!
//! The rules of LV2 that this module relies on: the host calls `instantiate`, `cleanup`, `activate`, `deactivate`,
//! `connect_port`, `run`, `work_response` and `restore` of an instance one at a time; `work` and `save` at any time on another
//! thread. Therefore [`Player`] and [`Mailbox`] belong to the first group, and [`Loader`] is behind a lock that only the second group and
//! `restore` take. Buffers of ports are valid during `run`, and may be the same for an input and an output.

use std::{
    cell::UnsafeCell,
    ffi::{CStr, CString, OsStr, c_char, c_int, c_void},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use amp::Settings;

use super::{one_line, play, print_error, whole_rate};
use crate::{
    loader::Loader,
    mailbox::{Mailbox, PATH_BYTES},
    player::Player,
    ports::{FileProperty, Port, VARIANTS, Variant},
    urids::Urids,
};

/// The description of a plugin for the host.
#[repr(C)]
pub struct Lv2Descriptor {
    uri: *const c_char,
    instantiate: unsafe extern "C" fn(*const Self, f64, *const c_char, *const *const Feature) -> *mut c_void,
    connect_port: unsafe extern "C" fn(*mut c_void, u32, *mut c_void),
    activate: Option<unsafe extern "C" fn(*mut c_void)>,
    run: unsafe extern "C" fn(*mut c_void, u32),
    deactivate: Option<unsafe extern "C" fn(*mut c_void)>,
    cleanup: unsafe extern "C" fn(*mut c_void),
    extension_data: unsafe extern "C" fn(*const c_char) -> *const c_void,
}

// SAFETY: the descriptors are constants: a static text and functions.
unsafe impl Sync for Lv2Descriptor {}

/// A feature of the host.
#[repr(C)]
struct Feature {
    uri: *const c_char,
    data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct UridMap {
    handle: *mut c_void,
    map: unsafe extern "C" fn(*mut c_void, *const c_char) -> u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Schedule {
    handle: *mut c_void,
    schedule_work: unsafe extern "C" fn(*mut c_void, u32, *const c_void) -> c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Log {
    handle: *mut c_void,
    printf: unsafe extern "C" fn(*mut c_void, u32, *const c_char, ...) -> c_int,
    vprintf: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MapPath {
    handle: *mut c_void,
    abstract_path: Translate,
    absolute_path: Translate,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct FreePath {
    handle: *mut c_void,
    free_path: unsafe extern "C" fn(*mut c_void, *mut c_char),
}

type Respond = unsafe extern "C" fn(*mut c_void, u32, *const c_void) -> c_int;

#[repr(C)]
struct WorkerInterface {
    work: unsafe extern "C" fn(*mut c_void, Respond, *mut c_void, u32, *const c_void) -> c_int,
    work_response: unsafe extern "C" fn(*mut c_void, u32, *const c_void) -> c_int,
    end_run: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

type Store = unsafe extern "C" fn(*mut c_void, u32, *const c_void, usize, u32, u32) -> c_int;
type Retrieve = unsafe extern "C" fn(*mut c_void, u32, *mut usize, *mut u32, *mut u32) -> *const c_void;

#[repr(C)]
struct StateInterface {
    save: unsafe extern "C" fn(*mut c_void, Store, *mut c_void, u32, *const *const Feature) -> c_int,
    restore: unsafe extern "C" fn(*mut c_void, Retrieve, *mut c_void, u32, *const *const Feature) -> c_int,
}

/// `LV2_WORKER_SUCCESS`, `LV2_STATE_SUCCESS`.
const SUCCESS: c_int = 0;
/// `LV2_WORKER_ERR_UNKNOWN`, `LV2_STATE_ERR_UNKNOWN`.
const FAILURE: c_int = 1;
/// `LV2_STATE_IS_POD`: the value can be copied. A path is not portable to another machine.
const IS_POD: u32 = 1;

/// The first byte of a message to the worker thread that asks to free the old parts. Others have the number of the file to
/// load there.
const COLLECT: u8 = 0;
/// Longest message to the worker thread, bytes.
const WORK_BYTES: usize = 1 + PATH_BYTES;

/// An instance of a plugin.
struct Instance {
    variant: Variant,
    /// Buffers by the index of their port; null before the host connects them.
    ports: UnsafeCell<Vec<*mut c_void>>,
    player: UnsafeCell<Player>,
    mailbox: UnsafeCell<Mailbox>,
    loader: Mutex<Loader>,
    urids: Urids,
    schedule: Option<Schedule>,
    log: Option<Log>,
}

impl Instance {
    fn loader(&self) -> MutexGuard<'_, Loader> {
        self.loader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows an error to the user, through the host if it can. Not for the audio thread.
    fn report(&self, error: &str) {
        let text = one_line(error);
        match &self.log {
            // SAFETY: the host's function is valid as long as the instance; format and text end in NUL, and the format has
            // one text.
            Some(log) => unsafe {
                (log.printf)(log.handle, self.urids.log_error, c"punctual: %s\n".as_ptr(), text.as_ptr());
            },
            None => print_error(error),
        }
    }

    /// Notes a file that is loaded now. For functions that the host calls while it calls none of the audio thread.
    fn note_loaded(&self, file: FileProperty, path: &[u8]) {
        // SAFETY: the callers are such functions, and the borrows end here.
        let (player, mailbox) = unsafe { (&mut *self.player.get(), &mut *self.mailbox.get()) };
        mailbox.note_loaded(file, path);
        player.note_loaded();
    }

    /// Sends a message to the worker thread; does nothing without one.
    fn work_later(&self, message: &[u8]) {
        let (Some(schedule), Ok(length)) = (&self.schedule, u32::try_from(message.len())) else { return };
        // SAFETY: the host's function is valid as long as the instance; it copies the message, which is live.
        unsafe { (schedule.schedule_work)(schedule.handle, length, message.as_ptr().cast()) };
    }
}

/// The data of a feature of the host; `None` if it has no such feature.
///
/// # Safety
/// `features` is null or an array of features that ends with null. The data of the feature is a `T`.
unsafe fn feature<T: Copy>(features: *const *const Feature, uri: &CStr) -> Option<T> {
    if features.is_null() {
        return None;
    }
    for index in 0.. {
        // SAFETY: the array ends with null, which was not reached yet.
        let feature = unsafe { *features.add(index) };
        if feature.is_null() {
            break;
        }
        // SAFETY: a feature is live and has a URI that ends in NUL.
        let (name, data) = unsafe { (CStr::from_ptr((*feature).uri), (*feature).data) };
        if name == uri && !data.is_null() {
            // SAFETY: the caller guarantees the type of this feature.
            return Some(unsafe { *data.cast::<T>() });
        }
    }
    None
}

unsafe extern "C" fn instantiate(
    descriptor: *const Lv2Descriptor,
    rate: f64,
    _bundle: *const c_char,
    features: *const *const Feature,
) -> *mut c_void {
    // SAFETY: the host passes its features, each with the data that its URI promises.
    let (map, schedule, log) = unsafe {
        (
            feature::<UridMap>(features, c"http://lv2plug.in/ns/ext/urid#map"),
            feature::<Schedule>(features, c"http://lv2plug.in/ns/ext/worker#schedule"),
            feature::<Log>(features, c"http://lv2plug.in/ns/ext/log#log"),
        )
    };
    let is_ours = |own: &&Lv2Descriptor| ptr::eq(*own, descriptor);
    let index = DESCRIPTORS.iter().position(|own| is_ours(&own));
    let (Some(index), Some(rate_hz)) = (index, whole_rate(rate)) else { return ptr::null_mut() };
    let urids = Urids::new(|name| {
        let (Some(map), name) = (map, CString::new(name).unwrap_or_default()) else { return 0 };
        // SAFETY: the host's function is valid during this call; the name ends in NUL.
        unsafe { (map.map)(map.handle, name.as_ptr()) }
    });
    let Ok(mut loader) = Loader::new() else { return ptr::null_mut() };
    let Ok(chain) = loader.chain(rate_hz, &Settings::default()) else { return ptr::null_mut() };
    let variant = VARIANTS[index];
    let instance = Instance {
        variant,
        ports: UnsafeCell::new(vec![ptr::null_mut(); variant.ports().count()]),
        player: UnsafeCell::new(Player::new(chain, Settings::default(), rate_hz)),
        mailbox: UnsafeCell::new(Mailbox::new(urids)),
        loader: Mutex::new(loader),
        urids,
        schedule,
        log,
    };
    Box::into_raw(Box::new(instance)).cast()
}

/// The instance of a handle.
///
/// # Safety
/// `handle` comes from [`instantiate`], and [`cleanup`] was not called yet.
unsafe fn instance<'a>(handle: *mut c_void) -> &'a Instance {
    // SAFETY: the caller guarantees that the instance is live.
    unsafe { &*handle.cast::<Instance>() }
}

unsafe extern "C" fn connect_port(handle: *mut c_void, port: u32, data: *mut c_void) {
    // SAFETY: the host passes a live instance, and calls nothing of the audio thread meanwhile.
    let ports = unsafe { &mut *instance(handle).ports.get() };
    if let Some(buffer) = ports.get_mut(port as usize) {
        *buffer = data;
    }
}

unsafe extern "C" fn run(handle: *mut c_void, frames: u32) {
    // SAFETY: the host passes a live instance.
    let instance = unsafe { instance(handle) };
    // SAFETY: the host calls the functions of the audio thread one at a time, and the borrows end before it is called.
    let (ports, player, mailbox) =
        unsafe { (&*instance.ports.get(), &mut *instance.player.get(), &mut *instance.mailbox.get()) };
    let buffer = |wanted: Port| {
        let place = instance.variant.ports().position(|port| port == wanted);
        place.and_then(|place| ports.get(place).copied()).unwrap_or(ptr::null_mut())
    };
    if let Some(sequence) = buffer_of_atom(buffer(Port::Control)) {
        mailbox.receive(sequence);
    }
    for (port, data) in instance.variant.ports().zip(ports).filter(|(_, data)| !data.is_null()) {
        // SAFETY: the host connects a control port to a float.
        let value = || unsafe { *data.cast::<f32>() };
        match port {
            Port::Parameter(parameter) => player.set(parameter, value()),
            Port::Enabled => player.enable(value() > 0.0),
            _ => {}
        }
    }
    // SAFETY: the host connects audio ports to as many floats as there are frames.
    unsafe {
        let outputs = [0, 1].map(|output| buffer(Port::Output(output)).cast());
        play(player, instance.variant.outputs, buffer(Port::Input).cast(), outputs, frames as usize);
    }
    let latency = buffer(Port::Latency).cast::<f32>();
    if !latency.is_null() {
        // SAFETY: the host connects a control port to a float.
        unsafe { *latency = player.delay() as f32 };
    }
    let notify = buffer(Port::Notify).cast::<u8>();
    if !notify.is_null() {
        // SAFETY: the size of the atom in an output port is that of its buffer after the head, as the host sets it.
        let buffer = unsafe {
            let space = (*notify.cast::<u32>()) as usize;
            std::slice::from_raw_parts_mut(notify, 8 + space)
        };
        mailbox.tell(buffer);
    }
    let is_time_to_collect = player.is_time_to_collect(frames);
    // A host without a second thread works inside of these calls. Each borrows the mailbox for itself.
    for _ in FileProperty::ALL {
        // SAFETY: as above; the borrow ends in this statement.
        let Some((file, path)) = (unsafe { &mut *instance.mailbox.get() }).take_wanted() else { break };
        let mut message = [0; WORK_BYTES];
        let length = 1 + path.get().len();
        message[0] = file.number();
        message[1..length].copy_from_slice(path.get());
        instance.work_later(&message[..length]);
    }
    if is_time_to_collect {
        instance.work_later(&[COLLECT]);
    }
}

/// The body of the sequence in an input port; `None` if the port is not connected.
fn buffer_of_atom<'a>(port: *mut c_void) -> Option<&'a [u8]> {
    let atom = port.cast::<u8>();
    if atom.is_null() {
        return None;
    }
    // SAFETY: the host connects the port to an atom, whose body has the size in its head.
    Some(unsafe {
        let size = (*atom.cast::<u32>()) as usize;
        std::slice::from_raw_parts(atom.add(8), size)
    })
}

unsafe extern "C" fn cleanup(handle: *mut c_void) {
    // SAFETY: the handle comes from `instantiate`, and the host calls this once, as the last function.
    drop(unsafe { Box::from_raw(handle.cast::<Instance>()) });
}

unsafe extern "C" fn work(
    handle: *mut c_void,
    respond: Respond,
    respond_handle: *mut c_void,
    size: u32,
    data: *const c_void,
) -> c_int {
    // SAFETY: the host passes a live instance and the message of `work_later`.
    let (instance, message) =
        unsafe { (instance(handle), std::slice::from_raw_parts(data.cast::<u8>(), size as usize)) };
    let Some((&kind, path)) = message.split_first() else { return FAILURE };
    let Some(file) = FileProperty::with_number(kind) else {
        instance.loader().collect();
        return SUCCESS;
    };
    let chosen = (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)));
    if let Err(error) = instance.loader().choose(&[(file, chosen)]) {
        instance.report(&error);
    }
    // The files in force, also after an error: the host may show the one that was refused.
    for file in FileProperty::ALL {
        let loader = instance.loader();
        let path = loader.file(file).map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
        let answer = [&[file.number()], path].concat();
        drop(loader);
        let length = u32::try_from(answer.len()).unwrap_or_default();
        // SAFETY: the host's function is valid during this call; it copies the answer, which is live.
        unsafe { respond(respond_handle, length, answer.as_ptr().cast()) };
    }
    SUCCESS
}

unsafe extern "C" fn work_response(handle: *mut c_void, size: u32, data: *const c_void) -> c_int {
    // SAFETY: the host passes a live instance and an answer of `work`, and calls nothing of the audio thread meanwhile.
    let (instance, answer) =
        unsafe { (instance(handle), std::slice::from_raw_parts(data.cast::<u8>(), size as usize)) };
    let Some((&number, path)) = answer.split_first() else { return FAILURE };
    let Some(file) = FileProperty::with_number(number) else { return FAILURE };
    instance.note_loaded(file, path);
    SUCCESS
}

unsafe extern "C" fn save(
    handle: *mut c_void,
    store: Store,
    store_handle: *mut c_void,
    _flags: u32,
    features: *const *const Feature,
) -> c_int {
    // SAFETY: the host passes a live instance and its features, each with the data that its URI promises.
    let (instance, paths) = unsafe { (instance(handle), Paths::of(features)) };
    if !instance.urids.are_known() {
        return FAILURE;
    }
    for file in FileProperty::ALL {
        let Some(path) = instance.loader().file_of_state(file).map(Path::to_owned) else { continue };
        let Ok(path) = CString::new(path.into_os_string().into_encoded_bytes()) else { return FAILURE };
        // SAFETY: the functions of the host are valid during this call.
        let path = unsafe { paths.mapped(path, |map| map.abstract_path) };
        let bytes = path.as_bytes_with_nul();
        let key = instance.urids.of(file);
        // SAFETY: the function of the host is valid during this call; it copies the value, which is live.
        let stored =
            unsafe { store(store_handle, key, bytes.as_ptr().cast(), bytes.len(), instance.urids.path, IS_POD) };
        if stored != SUCCESS {
            return stored;
        }
    }
    SUCCESS
}

/// Translates the paths of a state.
type Translate = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_char;

/// The functions of a host that translate the paths of a state, if it has any.
struct Paths {
    map: Option<MapPath>,
    free: Option<FreePath>,
}

impl Paths {
    /// # Safety
    /// As for [`feature`], with the types of these features.
    unsafe fn of(features: *const *const Feature) -> Self {
        // SAFETY: the caller guarantees the features.
        unsafe {
            Self {
                map: feature(features, c"http://lv2plug.in/ns/ext/state#mapPath"),
                free: feature(features, c"http://lv2plug.in/ns/ext/state#freePath"),
            }
        }
    }

    /// The path as the host translates it with one of its functions.
    ///
    /// # Safety
    /// The functions can be called now.
    unsafe fn mapped(&self, path: CString, translate: impl Fn(&MapPath) -> Translate) -> CString {
        let Some(map) = &self.map else { return path };
        // SAFETY: the path ends in NUL; the caller guarantees the function.
        let mapped = unsafe { translate(map)(map.handle, path.as_ptr()) };
        if mapped.is_null() {
            return path;
        }
        // SAFETY: the host returns a text of its own that ends in NUL.
        let copy = unsafe { CStr::from_ptr(mapped) }.to_owned();
        match self.free {
            // SAFETY: the text comes from this host, and is not used any more.
            Some(free) => unsafe { (free.free_path)(free.handle, mapped) },
            // SAFETY: without that feature, the text was allocated by `malloc`, as the document of mapPath says.
            None => unsafe { libc::free(mapped.cast()) },
        }
        copy
    }
}

unsafe extern "C" fn restore(
    handle: *mut c_void,
    retrieve: Retrieve,
    retrieve_handle: *mut c_void,
    _flags: u32,
    features: *const *const Feature,
) -> c_int {
    // SAFETY: the host passes a live instance and its features, each with the data that its URI promises.
    let (instance, paths) = unsafe { (instance(handle), Paths::of(features)) };
    if !instance.urids.are_known() {
        return FAILURE;
    }
    let mut files = Vec::new();
    for file in FileProperty::ALL {
        let (mut size, mut kind, mut flags) = (0, 0, 0);
        // SAFETY: the function of the host is valid during this call; the places for its results are live.
        let value =
            unsafe { retrieve(retrieve_handle, instance.urids.of(file), &raw mut size, &raw mut kind, &raw mut flags) };
        if value.is_null() || kind != instance.urids.path {
            continue;
        }
        // SAFETY: the host returns a value of this size, which is live during this call.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), size) };
        let Ok(path) = CString::new(bytes.split(|byte| *byte == 0).next().unwrap_or_default()) else { continue };
        // SAFETY: as in `save`.
        let path = unsafe { paths.mapped(path, |map| map.absolute_path) };
        if !path.is_empty() {
            files.push((file, PathBuf::from(OsStr::from_bytes(path.to_bytes()))));
        }
    }
    let loaded = instance.loader().restore(files);
    for file in FileProperty::ALL {
        let loader = instance.loader();
        instance.note_loaded(file, loader.file(file).map(|path| path.as_os_str().as_bytes()).unwrap_or_default());
    }
    match loaded {
        Ok(()) => SUCCESS,
        Err(error) => {
            instance.report(&error);
            FAILURE
        }
    }
}

unsafe extern "C" fn extension_data(uri: *const c_char) -> *const c_void {
    static WORKER: WorkerInterface = WorkerInterface { work, work_response, end_run: None };
    static STATE: StateInterface = StateInterface { save, restore };
    // SAFETY: the host passes a text that ends in NUL.
    match unsafe { CStr::from_ptr(uri) }.to_bytes() {
        b"http://lv2plug.in/ns/ext/worker#interface" => (&raw const WORKER).cast(),
        b"http://lv2plug.in/ns/ext/state#interface" => (&raw const STATE).cast(),
        _ => ptr::null(),
    }
}

const fn descriptor(uri: &'static CStr) -> Lv2Descriptor {
    Lv2Descriptor {
        uri: uri.as_ptr(),
        instantiate,
        connect_port,
        activate: None,
        run,
        deactivate: None,
        cleanup,
        extension_data,
    }
}

/// In the order of [`VARIANTS`].
static DESCRIPTORS: [Lv2Descriptor; VARIANTS.len()] =
    [descriptor(c"urn:punctual:amp"), descriptor(c"urn:punctual:amp-stereo")];

/// The plugin with this index; null after the last one. The entry point of the library.
#[unsafe(no_mangle)]
pub extern "C" fn lv2_descriptor(index: u32) -> *const Lv2Descriptor {
    DESCRIPTORS.get(index as usize).map_or(ptr::null(), ptr::from_ref)
}

#[cfg(test)]
mod tests;
