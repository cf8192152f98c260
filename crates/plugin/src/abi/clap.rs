//! The C interface of CLAP 1.2 (`clap/entry.h`, `plugin.h`, `process.h`, and the extensions `audio-ports`, `latency`, `log`,
//! `params`, `preset-load` and `state`).
//!
//! The rules of CLAP that this module relies on: the host calls the functions of an instance marked `[main-thread]` one at a
//! time, those marked `[audio-thread]` one at a time, and the latter only between `activate` and `deactivate`, which are of
//! the main thread. Therefore [`Player`] belongs to the audio thread while there is one, and [`Main`] to the main thread; the
//! rest of an instance is read or atomic. `flush` of `params` can be of either thread and touches the values only.

use std::{
    cell::UnsafeCell,
    ffi::{CStr, OsStr, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr, slice,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
};

use clap_sys::{
    entry::clap_plugin_entry,
    events::{CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_PARAM_VALUE, clap_event_param_value, clap_input_events},
    ext::{
        audio_ports::{
            CLAP_AUDIO_PORT_IS_MAIN, CLAP_EXT_AUDIO_PORTS, CLAP_PORT_MONO, CLAP_PORT_STEREO, clap_audio_port_info,
            clap_plugin_audio_ports,
        },
        latency::{CLAP_EXT_LATENCY, clap_host_latency, clap_plugin_latency},
        log::{CLAP_EXT_LOG, CLAP_LOG_ERROR, clap_host_log},
        params::{CLAP_EXT_PARAMS, CLAP_PARAM_RESCAN_VALUES, clap_host_params},
        preset_load::{
            CLAP_EXT_PRESET_LOAD, CLAP_EXT_PRESET_LOAD_COMPAT, clap_host_preset_load, clap_plugin_preset_load,
        },
        state::{CLAP_EXT_STATE, clap_plugin_state},
    },
    factory::{
        plugin_factory::{CLAP_PLUGIN_FACTORY_ID, clap_plugin_factory},
        preset_discovery::{
            CLAP_PRESET_DISCOVERY_FACTORY_ID, CLAP_PRESET_DISCOVERY_FACTORY_ID_COMPAT,
            CLAP_PRESET_DISCOVERY_LOCATION_FILE,
        },
    },
    host::clap_host,
    id::CLAP_INVALID_ID,
    plugin::{clap_plugin, clap_plugin_descriptor},
    plugin_features::{
        CLAP_PLUGIN_FEATURE_AUDIO_EFFECT, CLAP_PLUGIN_FEATURE_DISTORTION, CLAP_PLUGIN_FEATURE_MONO,
        CLAP_PLUGIN_FEATURE_STEREO,
    },
    process::{CLAP_PROCESS_CONTINUE, CLAP_PROCESS_ERROR, clap_process, clap_process_status},
    stream::{clap_istream, clap_ostream},
    version::{CLAP_VERSION, clap_version_is_compatible},
};

use super::{play, print_error, whole_rate};
use crate::{
    control::{Control, Values},
    loader::Loader,
    player::Player,
    ports::{FileProperty, VARIANTS, Variant},
    state,
};

mod discovery;
mod params;

/// An instance of a plugin.
struct Instance {
    /// The handle of the host.
    plugin: clap_plugin,
    host: *const clap_host,
    variant: Variant,
    values: Values,
    /// `None` while the instance is not active.
    player: UnsafeCell<Option<Player>>,
    /// Delay of the outputs, samples.
    delay: AtomicU32,
    /// True if files were loaded and the audio thread has not noted that yet.
    is_loaded: AtomicBool,
    main: Mutex<Main>,
}

/// The part of an instance for the main thread only.
struct Main {
    loader: Loader,
    /// The delay that the host knows, samples.
    known_delay: u32,
    is_active: bool,
}

impl Instance {
    fn main(&self) -> MutexGuard<'_, Main> {
        self.main.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The functions of an extension of the host; `None` if it has no such extension.
    ///
    /// # Safety
    /// `T` is the structure of this extension.
    unsafe fn host_extension<T: Copy>(&self, id: &CStr) -> Option<T> {
        // SAFETY: the host outlives the instance, and returns null or a structure that lives as long; the caller guarantees
        // its type.
        unsafe {
            let get = (*self.host).get_extension?;
            get(self.host, id.as_ptr()).cast::<T>().as_ref().copied()
        }
    }

    /// Shows an error to the user, through the host if it can.
    fn report(&self, error: &str) {
        // SAFETY: the type is that of the extension.
        let log = unsafe { self.host_extension::<clap_host_log>(CLAP_EXT_LOG) };
        match log.and_then(|log| log.log) {
            // SAFETY: the host's function is valid as long as the instance; the text ends in NUL.
            Some(log) => unsafe { log(self.host, CLAP_LOG_ERROR, super::one_line(error).as_ptr()) },
            None => print_error(error),
        }
    }

    /// Asks the host to call `on_main_thread`.
    fn call_later(&self) {
        // SAFETY: the host outlives the instance; the function is for any thread.
        unsafe {
            if let Some(request) = (*self.host).request_callback {
                request(self.host);
            }
        }
    }

    /// Sets values by the events of the host from `next` on, up to the frame `until`. Returns the first later event.
    ///
    /// # Safety
    /// `events` is null or a live list.
    unsafe fn set_by(&self, events: *const clap_input_events, mut next: u32, until: u32) -> u32 {
        // SAFETY: the caller guarantees the list; an event has the size of its type.
        unsafe {
            let Some(list) = events.as_ref() else { return next };
            let (Some(size), Some(get)) = (list.size, list.get) else { return next };
            while next < size(events) {
                let Some(head) = get(events, next).as_ref() else { break };
                if head.time > until {
                    break;
                }
                next += 1;
                if (head.space_id, head.type_) == (CLAP_CORE_EVENT_SPACE_ID, CLAP_EVENT_PARAM_VALUE) {
                    let event = *ptr::from_ref(head).cast::<clap_event_param_value>();
                    if let Some(control) = self.values.control(event.param_id) {
                        self.values.set(control, event.value);
                    }
                }
            }
        }
        next
    }

    /// Loads files.
    fn load(&self, load: impl FnOnce(&mut Loader) -> Result<(), String>) -> Result<(), String> {
        let mut main = self.main();
        let loaded = load(&mut main.loader);
        self.is_loaded.store(main.is_active, Relaxed);
        loaded
    }
}

/// The instance of a handle.
///
/// # Safety
/// `plugin` comes from [`create`], and [`destroy`] was not called yet.
unsafe fn instance<'a>(plugin: *const clap_plugin) -> &'a Instance {
    // SAFETY: the caller guarantees that the instance is live.
    unsafe { &*(*plugin).plugin_data.cast::<Instance>() }
}

unsafe extern "C" fn init(_: *const clap_plugin) -> bool {
    true
}

unsafe extern "C" fn destroy(plugin: *const clap_plugin) {
    // SAFETY: the handle comes from `create`, and the host calls this once, as the last function.
    drop(unsafe { Box::from_raw((*plugin).plugin_data.cast::<Instance>()) });
}

unsafe extern "C" fn activate(plugin: *const clap_plugin, rate: f64, _least_frames: u32, _most_frames: u32) -> bool {
    // SAFETY: the host passes a live instance.
    let instance = unsafe { instance(plugin) };
    let Some(rate_hz) = whole_rate(rate) else {
        instance.report(&format!("the sample rate must be 8000 to 768000 Hz (got {rate})"));
        return false;
    };
    let settings = instance.values.settings();
    let chain = instance.main().loader.chain(rate_hz, &settings);
    let chain = match chain {
        Ok(chain) => chain,
        Err(error) => {
            instance.report(&error);
            return false;
        }
    };
    let mut player = Player::new(chain, settings, rate_hz);
    instance.values.apply(&mut player);
    let delay = number(player.delay());
    instance.delay.store(delay, Relaxed);
    // SAFETY: there is no audio thread before this function returns.
    unsafe { *instance.player.get() = Some(player) };
    let mut main = instance.main();
    main.is_active = true;
    let is_changed = delay != main.known_delay;
    main.known_delay = delay;
    drop(main);
    if is_changed {
        // SAFETY: the type is that of the extension, and this is the main thread during an activation.
        unsafe {
            let latency = instance.host_extension::<clap_host_latency>(CLAP_EXT_LATENCY);
            if let Some(changed) = latency.and_then(|latency| latency.changed) {
                changed(instance.host);
            }
        }
    }
    true
}

/// A number as CLAP has it.
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

unsafe extern "C" fn deactivate(plugin: *const clap_plugin) {
    // SAFETY: the host passes a live instance.
    let instance = unsafe { instance(plugin) };
    // SAFETY: the audio thread has ended.
    unsafe { *instance.player.get() = None };
    let mut main = instance.main();
    main.loader.release_chain();
    main.is_active = false;
}

unsafe extern "C" fn start_processing(_: *const clap_plugin) -> bool {
    true
}

unsafe extern "C" fn stop_processing(_: *const clap_plugin) {}

/// Ends echoes and reverb. The sound in models and cabinets ends by itself, with their length.
unsafe extern "C" fn reset(plugin: *const clap_plugin) {
    // SAFETY: the host passes a live instance; this is the audio thread, and the borrow ends with this function.
    if let Some(player) = unsafe { (*instance(plugin).player.get()).as_mut() } {
        player.end_echoes();
    }
}

unsafe extern "C" fn process(plugin: *const clap_plugin, process: *const clap_process) -> clap_process_status {
    // SAFETY: the host passes a live instance, and a live description of the block.
    let (instance, process) = unsafe { (instance(plugin), &*process) };
    // SAFETY: this is the audio thread, and the borrow ends with this function.
    let Some(player) = (unsafe { (*instance.player.get()).as_mut() }) else { return CLAP_PROCESS_ERROR };
    // SAFETY: the host passes as many ports as it says, each with as many buffers as the port has channels.
    let (input, outputs) = unsafe {
        let inputs = match process.audio_inputs_count {
            0 => &[],
            count => slice::from_raw_parts(process.audio_inputs, count as usize),
        };
        let outputs = match process.audio_outputs_count {
            0 => &mut [],
            count => slice::from_raw_parts_mut(process.audio_outputs, count as usize),
        };
        let input = inputs.first().map_or(ptr::null_mut(), |port| channel(port.data32, port.channel_count, 0));
        let outputs = [0, 1].map(|index| {
            outputs.first_mut().map_or(ptr::null_mut(), |port| {
                port.constant_mask = 0;
                channel(port.data32, port.channel_count, index)
            })
        });
        (input, outputs)
    };
    let (mut at, mut next) = (0, 0);
    loop {
        // SAFETY: the list of events is live, and the buffers have this many frames.
        unsafe {
            next = instance.set_by(process.in_events, next, at);
            instance.values.apply(player);
            let end = time_of(process.in_events, next).unwrap_or(process.frames_count).clamp(at, process.frames_count);
            let buffer = |buffer: *mut f32| if buffer.is_null() { buffer } else { buffer.add(at as usize) };
            play(player, instance.variant.outputs, buffer(input), outputs.map(buffer), (end - at) as usize);
            at = end;
        }
        if at == process.frames_count {
            break;
        }
    }
    // Events after the block, which CLAP does not allow.
    // SAFETY: the list of events is live.
    unsafe { instance.set_by(process.in_events, next, u32::MAX) };
    if instance.is_loaded.swap(false, Relaxed) {
        player.note_loaded();
    }
    let delay = number(player.delay());
    let is_other_delay = instance.delay.swap(delay, Relaxed) != delay;
    if player.is_time_to_collect(process.frames_count) || is_other_delay {
        instance.call_later();
    }
    CLAP_PROCESS_CONTINUE
}

/// The buffer of a channel; null if there is none.
///
/// # Safety
/// `channels` is null or has `count` buffers.
unsafe fn channel(channels: *mut *mut f32, count: u32, index: u32) -> *mut f32 {
    match index < count && !channels.is_null() {
        // SAFETY: the caller guarantees the number of buffers.
        true => unsafe { *channels.add(index as usize) },
        false => ptr::null_mut(),
    }
}

/// The frame of an event of the host; `None` if there is no such event.
///
/// # Safety
/// `events` is null or a live list.
unsafe fn time_of(events: *const clap_input_events, index: u32) -> Option<u32> {
    // SAFETY: the caller guarantees the list.
    unsafe {
        let list = events.as_ref()?;
        if index >= list.size?(events) {
            return None;
        }
        Some(list.get?(events, index).as_ref()?.time)
    }
}

unsafe extern "C" fn on_main_thread(plugin: *const clap_plugin) {
    // SAFETY: the host passes a live instance.
    let instance = unsafe { instance(plugin) };
    let mut main = instance.main();
    main.loader.collect();
    // The delay can change during an activation only.
    if main.is_active && instance.delay.load(Relaxed) != main.known_delay {
        drop(main);
        // SAFETY: the host outlives the instance; the function is for any thread.
        unsafe {
            if let Some(request) = (*instance.host).request_restart {
                request(instance.host);
            }
        }
    }
}

unsafe extern "C" fn port_count(_: *const clap_plugin, _is_input: bool) -> u32 {
    1
}

unsafe extern "C" fn port(
    plugin: *const clap_plugin,
    index: u32,
    is_input: bool,
    info: *mut clap_audio_port_info,
) -> bool {
    // SAFETY: the host passes a live instance and space for the result.
    let (instance, info) = unsafe { (instance(plugin), &mut *info) };
    let channels = if is_input { 1 } else { instance.variant.outputs };
    if index != 0 {
        return false;
    }
    *info = clap_audio_port_info {
        id: u32::from(!is_input),
        name: text(if is_input { "Guitar" } else { "Out" }),
        flags: CLAP_AUDIO_PORT_IS_MAIN,
        channel_count: channels,
        port_type: if channels == 1 { CLAP_PORT_MONO } else { CLAP_PORT_STEREO }.as_ptr(),
        in_place_pair: if instance.variant.outputs == 1 { u32::from(is_input) } else { CLAP_INVALID_ID },
    };
    true
}

/// A text in an array of C that ends in NUL, cut off if it is too long.
fn text<const LENGTH: usize>(text: &str) -> [c_char; LENGTH] {
    let mut characters = [0; LENGTH];
    for (character, byte) in characters[..LENGTH - 1].iter_mut().zip(text.bytes()) {
        *character = c_char::from_ne_bytes([byte]);
    }
    characters
}

unsafe extern "C" fn latency(plugin: *const clap_plugin) -> u32 {
    // SAFETY: the host passes a live instance.
    unsafe { instance(plugin) }.delay.load(Relaxed)
}

unsafe extern "C" fn save(plugin: *const clap_plugin, stream: *const clap_ostream) -> bool {
    // SAFETY: the host passes a live instance and a live stream.
    let (instance, Some(write)) = (unsafe { (instance(plugin), (*stream).write) }) else { return false };
    let bytes = {
        let main = instance.main();
        state::write(&instance.values, |file| main.loader.file_of_state(file))
    };
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        // SAFETY: the bytes are live.
        let written = unsafe { write(stream, rest.as_ptr().cast(), rest.len() as u64) };
        match usize::try_from(written).ok().filter(|written| *written > 0).and_then(|written| rest.get(written..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

unsafe extern "C" fn load(plugin: *const clap_plugin, stream: *const clap_istream) -> bool {
    // SAFETY: the host passes a live instance and a live stream.
    let instance = unsafe { instance(plugin) };
    // SAFETY: as above.
    let loaded = unsafe { all(stream) }.and_then(|bytes| state::read(&bytes)).and_then(|read| {
        let fresh = Values::default();
        read.values.into_iter().for_each(|(control, value)| fresh.set(control, value));
        Control::all().for_each(|control| instance.values.set(control, fresh.get(control).into()));
        instance.tell_values();
        instance.load(|loader| loader.restore(read.files))
    });
    loaded.inspect_err(|error| instance.report(error)).is_ok()
}

/// All bytes of a stream.
///
/// # Errors
/// A sentence for the user.
///
/// # Safety
/// The stream is live.
unsafe fn all(stream: *const clap_istream) -> Result<Vec<u8>, String> {
    let failed = || "the host cannot read the state".to_owned();
    let mut bytes = Vec::new();
    // SAFETY: the caller guarantees the stream.
    let read = unsafe { (*stream).read }.ok_or_else(failed)?;
    loop {
        let mut part = [0; 4096];
        // SAFETY: the host writes at most as many bytes as the part has.
        let count = unsafe { read(stream, part.as_mut_ptr().cast(), part.len() as u64) };
        let count = usize::try_from(count).map_err(|_| failed())?;
        bytes.extend_from_slice(part.get(..count).ok_or_else(failed)?);
        match count {
            0 => return Ok(bytes),
            _ if bytes.len() > state::MAX_BYTES => return Err("the state is larger than 1 MiB".to_owned()),
            _ => {}
        }
    }
}

unsafe extern "C" fn load_file(
    plugin: *const clap_plugin,
    kind: u32,
    location: *const c_char,
    key: *const c_char,
) -> bool {
    // SAFETY: the host passes a live instance.
    let instance = unsafe { instance(plugin) };
    let loaded = match kind == CLAP_PRESET_DISCOVERY_LOCATION_FILE && !location.is_null() {
        // SAFETY: the host passes a text that ends in NUL.
        true => instance.load_file(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(location) }.to_bytes()))),
        false => Err("the plugin has no presets of its own, only files".to_owned()),
    };
    // SAFETY: the type is that of the extension, and this is the main thread; the texts are live and end in NUL, or are null.
    unsafe {
        let answers = instance
            .host_extension::<clap_host_preset_load>(CLAP_EXT_PRESET_LOAD)
            .or_else(|| instance.host_extension(CLAP_EXT_PRESET_LOAD_COMPAT));
        match (&loaded, answers.and_then(|own| own.loaded), answers.and_then(|own| own.on_error)) {
            (Ok(()), Some(tell), _) => tell(instance.host, kind, location, key),
            (Err(error), _, Some(tell)) => tell(instance.host, kind, location, key, 0, super::one_line(error).as_ptr()),
            _ => {}
        }
    }
    loaded.inspect_err(|error| instance.report(error)).is_ok()
}

impl Instance {
    /// Loads a model, a cabinet or a preset with its settings.
    fn load_file(&self, path: &Path) -> Result<(), String> {
        let file = FileProperty::of(path).ok_or_else(|| {
            let endings: Vec<_> = FileProperty::endings().map(|(ending, _)| format!(".{ending}")).collect();
            format!("{} is no model, cabinet or preset; these end in {}", path.display(), endings.join(", "))
        })?;
        self.load(|loader| loader.choose(&[(file, Some(path.to_owned()))]))?;
        if file == FileProperty::Preset {
            self.values.set_all(self.main().loader.settings());
            self.tell_values();
        }
        Ok(())
    }

    /// Reports changed values to the host. For the main thread.
    fn tell_values(&self) {
        // SAFETY: the type is that of the extension, and this is the main thread.
        unsafe {
            let params = self.host_extension::<clap_host_params>(CLAP_EXT_PARAMS);
            if let Some(rescan) = params.and_then(|params| params.rescan) {
                rescan(self.host, CLAP_PARAM_RESCAN_VALUES);
            }
        }
    }
}

unsafe extern "C" fn extension(_: *const clap_plugin, id: *const c_char) -> *const c_void {
    static PORTS: clap_plugin_audio_ports = clap_plugin_audio_ports { count: Some(port_count), get: Some(port) };
    static LATENCY: clap_plugin_latency = clap_plugin_latency { get: Some(latency) };
    static STATE: clap_plugin_state = clap_plugin_state { save: Some(save), load: Some(load) };
    static PRESETS: clap_plugin_preset_load = clap_plugin_preset_load { from_location: Some(load_file) };
    // SAFETY: the host passes a text that ends in NUL.
    let id = unsafe { CStr::from_ptr(id) };
    if id == CLAP_EXT_AUDIO_PORTS {
        (&raw const PORTS).cast()
    } else if id == CLAP_EXT_LATENCY {
        (&raw const LATENCY).cast()
    } else if id == CLAP_EXT_STATE {
        (&raw const STATE).cast()
    } else if id == CLAP_EXT_PARAMS {
        (&raw const params::PARAMS).cast()
    } else if id == CLAP_EXT_PRESET_LOAD || id == CLAP_EXT_PRESET_LOAD_COMPAT {
        (&raw const PRESETS).cast()
    } else {
        ptr::null()
    }
}

/// A list of features of a descriptor, which ends with null.
struct Features([*const c_char; 4]);

// SAFETY: the texts are constants.
unsafe impl Sync for Features {}

static FEATURES: [Features; VARIANTS.len()] =
    [features(CLAP_PLUGIN_FEATURE_MONO), features(CLAP_PLUGIN_FEATURE_STEREO)];

const fn features(channels: &'static CStr) -> Features {
    Features([
        CLAP_PLUGIN_FEATURE_AUDIO_EFFECT.as_ptr(),
        CLAP_PLUGIN_FEATURE_DISTORTION.as_ptr(),
        channels.as_ptr(),
        ptr::null(),
    ])
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version without NUL"),
};

const fn descriptor(id: &'static CStr, name: &'static CStr, features: &'static Features) -> clap_plugin_descriptor {
    clap_plugin_descriptor {
        clap_version: CLAP_VERSION,
        id: id.as_ptr(),
        name: name.as_ptr(),
        vendor: c"the punctual developers".as_ptr(),
        url: c"".as_ptr(),
        manual_url: c"".as_ptr(),
        support_url: c"".as_ptr(),
        version: VERSION.as_ptr(),
        description: c"A neural guitar amplifier and cabinet.".as_ptr(),
        features: features.0.as_ptr(),
    }
}

/// In the order of [`VARIANTS`].
static DESCRIPTORS: [clap_plugin_descriptor; VARIANTS.len()] = [
    descriptor(c"punctual.amp", c"Punctual Amp", &FEATURES[0]),
    descriptor(c"punctual.amp-stereo", c"Punctual Amp Stereo", &FEATURES[1]),
];

unsafe extern "C" fn plugin_count(_: *const clap_plugin_factory) -> u32 {
    number(DESCRIPTORS.len())
}

unsafe extern "C" fn plugin_descriptor(_: *const clap_plugin_factory, index: u32) -> *const clap_plugin_descriptor {
    DESCRIPTORS.get(index as usize).map_or(ptr::null(), ptr::from_ref)
}

unsafe extern "C" fn create(
    _: *const clap_plugin_factory,
    host: *const clap_host,
    id: *const c_char,
) -> *const clap_plugin {
    // SAFETY: the host passes itself, and a text that ends in NUL.
    let (host_version, id) = unsafe { ((*host).clap_version, CStr::from_ptr(id)) };
    // SAFETY: the descriptors have constant texts.
    let index = DESCRIPTORS.iter().position(|own| unsafe { CStr::from_ptr(own.id) } == id);
    let (Some(index), true, Ok(loader)) = (index, clap_version_is_compatible(host_version), Loader::new()) else {
        return ptr::null();
    };
    let plugin = clap_plugin {
        desc: &raw const DESCRIPTORS[index],
        plugin_data: ptr::null_mut(),
        init: Some(init),
        destroy: Some(destroy),
        activate: Some(activate),
        deactivate: Some(deactivate),
        start_processing: Some(start_processing),
        stop_processing: Some(stop_processing),
        reset: Some(reset),
        process: Some(process),
        get_extension: Some(extension),
        on_main_thread: Some(on_main_thread),
    };
    let instance = Box::into_raw(Box::new(Instance {
        plugin,
        host,
        variant: VARIANTS[index],
        values: Values::default(),
        player: UnsafeCell::new(None),
        delay: AtomicU32::new(0),
        is_loaded: AtomicBool::new(false),
        main: Mutex::new(Main { loader, known_delay: 0, is_active: false }),
    }));
    // SAFETY: the instance is live, and nobody else has its address yet.
    unsafe {
        (*instance).plugin.plugin_data = instance.cast();
        &raw const (*instance).plugin
    }
}

unsafe extern "C" fn entry_init(_path: *const c_char) -> bool {
    true
}

unsafe extern "C" fn entry_deinit() {}

unsafe extern "C" fn factory(id: *const c_char) -> *const c_void {
    static PLUGINS: clap_plugin_factory = clap_plugin_factory {
        get_plugin_count: Some(plugin_count),
        get_plugin_descriptor: Some(plugin_descriptor),
        create_plugin: Some(create),
    };
    // SAFETY: the host passes a text that ends in NUL.
    let id = unsafe { CStr::from_ptr(id) };
    if id == CLAP_PLUGIN_FACTORY_ID {
        (&raw const PLUGINS).cast()
    } else if id == CLAP_PRESET_DISCOVERY_FACTORY_ID || id == CLAP_PRESET_DISCOVERY_FACTORY_ID_COMPAT {
        (&raw const discovery::FACTORY).cast()
    } else {
        ptr::null()
    }
}

/// The entry point of the library for CLAP hosts.
#[unsafe(no_mangle)]
pub static clap_entry: clap_plugin_entry = clap_plugin_entry {
    clap_version: CLAP_VERSION,
    init: Some(entry_init),
    deinit: Some(entry_deinit),
    get_factory: Some(factory),
};

#[cfg(test)]
mod tests;
