//! A small host: it calls the plugin through the C interface as other hosts do.

use std::{ffi::CString, fs};

use amp::{Chain, Parameter, Parts, Settings};
use clap_sys::{
    audio_buffer::clap_audio_buffer,
    events::clap_event_header,
    ext::params::clap_plugin_params,
    factory::preset_discovery::{
        clap_preset_discovery_filetype, clap_preset_discovery_indexer, clap_preset_discovery_location,
        clap_preset_discovery_metadata_receiver,
    },
    universal_plugin_id::clap_universal_plugin_id,
};

use super::*;
use crate::abi::{
    counting::ALLOCATIONS,
    test_files::{FRAMES, RATE_HZ, guitar, largest_difference, model, response},
};

/// The requests of the plugin.
#[derive(Default)]
struct Requests {
    callbacks: u32,
    restarts: u32,
    rescans: u32,
    latencies: u32,
    errors: Vec<String>,
    loaded: Vec<String>,
}

/// The requests behind the handle of this host.
fn requests<'a>(host: *const clap_host) -> &'a mut Requests {
    // SAFETY: the data of this host are its live requests, and the tests have one thread.
    unsafe { &mut *(*host).host_data.cast::<Requests>() }
}

fn owned(text: *const c_char) -> String {
    // SAFETY: the plugin passes texts that end in NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn request_callback(host: *const clap_host) {
    requests(host).callbacks += 1;
}

unsafe extern "C" fn request_restart(host: *const clap_host) {
    requests(host).restarts += 1;
}

unsafe extern "C" fn log(host: *const clap_host, _: i32, text: *const c_char) {
    requests(host).errors.push(owned(text));
}

unsafe extern "C" fn rescan(host: *const clap_host, _: u32) {
    requests(host).rescans += 1;
}

unsafe extern "C" fn latency_changed(host: *const clap_host) {
    requests(host).latencies += 1;
}

unsafe extern "C" fn on_error(
    host: *const clap_host,
    _: u32,
    _: *const c_char,
    _: *const c_char,
    _: i32,
    text: *const c_char,
) {
    requests(host).errors.push(owned(text));
}

unsafe extern "C" fn loaded(host: *const clap_host, _: u32, location: *const c_char, _: *const c_char) {
    requests(host).loaded.push(owned(location));
}

unsafe extern "C" fn host_extension(_: *const clap_host, id: *const c_char) -> *const c_void {
    static LOG: clap_host_log = clap_host_log { log: Some(log) };
    static LATENCY: clap_host_latency = clap_host_latency { changed: Some(latency_changed) };
    static PARAMS: clap_host_params = clap_host_params { rescan: Some(rescan), clear: None, request_flush: None };
    static PRESETS: clap_host_preset_load = clap_host_preset_load { on_error: Some(on_error), loaded: Some(loaded) };
    match owned(id).as_str() {
        "clap.log" => (&raw const LOG).cast(),
        "clap.latency" => (&raw const LATENCY).cast(),
        "clap.params" => (&raw const PARAMS).cast(),
        "clap.preset-load/2" => (&raw const PRESETS).cast(),
        _ => ptr::null(),
    }
}

unsafe extern "C" fn event_count(list: *const clap_input_events) -> u32 {
    // SAFETY: the context of a list of this host is its events.
    number(unsafe { (*(*list).ctx.cast::<Vec<clap_event_param_value>>()).len() })
}

unsafe extern "C" fn event(list: *const clap_input_events, index: u32) -> *const clap_event_header {
    // SAFETY: as above; the plugin asks for events that exist.
    unsafe { &raw const (&(*(*list).ctx.cast::<Vec<clap_event_param_value>>()))[index as usize].header }
}

/// A change of a value at a frame.
fn change(time: u32, control: Control, value: f64) -> clap_event_param_value {
    let header = clap_event_header {
        size: number(size_of::<clap_event_param_value>()),
        time,
        space_id: CLAP_CORE_EVENT_SPACE_ID,
        type_: CLAP_EVENT_PARAM_VALUE,
        flags: 0,
    };
    let cookie = ptr::null_mut();
    let [port_index, channel, key] = [-1; 3];
    clap_event_param_value { header, param_id: control.id(), cookie, note_id: -1, port_index, channel, key, value }
}

fn list(events: &mut Vec<clap_event_param_value>) -> clap_input_events {
    clap_input_events { ctx: ptr::from_mut(events).cast(), size: Some(event_count), get: Some(event) }
}

/// A host with one instance of a plugin.
struct Host {
    host: Box<clap_host>,
    plugin: *const clap_plugin,
    is_active: bool,
    /// Callbacks after the last block.
    called_back: u32,
}

impl Host {
    fn new(index: usize) -> Self {
        let requests = Box::into_raw(Box::<Requests>::default());
        let host = Box::new(clap_host {
            clap_version: CLAP_VERSION,
            host_data: requests.cast(),
            name: c"small host".as_ptr(),
            vendor: c"".as_ptr(),
            url: c"".as_ptr(),
            version: c"1".as_ptr(),
            get_extension: Some(host_extension),
            request_restart: Some(request_restart),
            request_process: None,
            request_callback: Some(request_callback),
        });
        // SAFETY: the library returns the factory for this name, which is a constant; the host is live.
        let plugin = unsafe {
            let found = clap_entry.get_factory.unwrap()(CLAP_PLUGIN_FACTORY_ID.as_ptr()).cast::<clap_plugin_factory>();
            (*found).create_plugin.unwrap()(found, &raw const *host, DESCRIPTORS[index].id)
        };
        assert!(!plugin.is_null());
        Self { host, plugin, is_active: false, called_back: 0 }
    }

    fn requests(&self) -> &mut Requests {
        requests(&raw const *self.host)
    }

    fn extension<T>(&self, id: &CStr) -> &'static T {
        // SAFETY: the plugin returns the structure of this name, which is a constant.
        unsafe { extension(self.plugin, id.as_ptr()).cast::<T>().as_ref() }.unwrap()
    }

    fn activate(&mut self, rate_hz: f64) -> bool {
        // SAFETY: the plugin is live and not active.
        self.is_active = unsafe { activate(self.plugin, rate_hz, 1, 4096) };
        self.is_active
    }

    fn deactivate(&mut self) {
        // SAFETY: the plugin is live and active.
        unsafe { deactivate(self.plugin) };
        self.is_active = false;
    }

    /// Calls the plugin for a block of this input, which must not allocate. Then calls it back as it requested.
    fn run(&mut self, input: &[f32], mut events: Vec<clap_event_param_value>) -> [Vec<f32>; 2] {
        let mut dry = input.to_vec();
        let mut wet = [vec![9.0; input.len()], vec![9.0; input.len()]];
        let mut inputs = [dry.as_mut_ptr()];
        let [left, right] = &mut wet;
        let mut outputs = [left.as_mut_ptr(), right.as_mut_ptr()];
        // SAFETY: the plugin is live.
        let channels = unsafe { instance(self.plugin) }.variant.outputs;
        let port = |data32: *mut *mut f32, channel_count| clap_audio_buffer {
            data32,
            data64: ptr::null_mut(),
            channel_count,
            latency: 0,
            constant_mask: u64::MAX,
        };
        let (audio_inputs, mut audio_outputs) = (port(inputs.as_mut_ptr(), 1), port(outputs.as_mut_ptr(), channels));
        let events = list(&mut events);
        let block = clap_process {
            steady_time: -1,
            frames_count: number(input.len()),
            transport: ptr::null(),
            audio_inputs: &raw const audio_inputs,
            audio_outputs: &raw mut audio_outputs,
            audio_inputs_count: 1,
            audio_outputs_count: 1,
            in_events: &raw const events,
            out_events: ptr::null(),
        };
        let before = ALLOCATIONS.get();
        // SAFETY: the plugin is active, and the block is live with all that it refers to.
        assert_eq!(unsafe { process(self.plugin, &raw const block) }, CLAP_PROCESS_CONTINUE);
        assert_eq!(ALLOCATIONS.get(), before, "the audio thread allocated");
        assert_eq!(audio_outputs.constant_mask, 0);
        self.called_back = std::mem::take(&mut self.requests().callbacks);
        if self.called_back > 0 {
            // SAFETY: the plugin is live.
            unsafe { on_main_thread(self.plugin) };
        }
        wet
    }

    fn load_file(&self, path: &str) -> bool {
        let path = CString::new(path).unwrap();
        // SAFETY: the plugin is live, and the text ends in NUL.
        unsafe { load_file(self.plugin, CLAP_PRESET_DISCOVERY_LOCATION_FILE, path.as_ptr(), ptr::null()) }
    }

    fn value(&self, control: Control) -> f64 {
        let mut value = f64::NAN;
        let get = self.extension::<clap_plugin_params>(CLAP_EXT_PARAMS).get_value.unwrap();
        // SAFETY: the plugin is live, and the value has space.
        assert!(unsafe { get(self.plugin, control.id(), &raw mut value) });
        value
    }

    fn latency(&self) -> u32 {
        // SAFETY: the plugin is live.
        unsafe { self.extension::<clap_plugin_latency>(CLAP_EXT_LATENCY).get.unwrap()(self.plugin) }
    }

    /// Its state, passed in parts of three bytes.
    fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::<u8>::new();
        let stream = clap_ostream { ctx: (&raw mut bytes).cast(), write: Some(write) };
        // SAFETY: the plugin and the stream are live.
        assert!(unsafe { save(self.plugin, &raw const stream) });
        bytes
    }

    fn load(&self, mut bytes: &[u8]) -> bool {
        let stream = clap_istream { ctx: (&raw mut bytes).cast(), read: Some(read) };
        // SAFETY: the plugin and the stream are live.
        unsafe { load(self.plugin, &raw const stream) }
    }
}

unsafe extern "C" fn write(stream: *const clap_ostream, from: *const c_void, count: u64) -> i64 {
    let count = count.min(3);
    // SAFETY: the context is a vector, and the plugin passes this many bytes.
    unsafe { (*(*stream).ctx.cast::<Vec<u8>>()).extend(slice::from_raw_parts(from.cast::<u8>(), count as usize)) };
    count.cast_signed()
}

unsafe extern "C" fn read(stream: *const clap_istream, to: *mut c_void, count: u64) -> i64 {
    // SAFETY: the context is a slice, and the plugin passes space for this many bytes.
    unsafe {
        let bytes = &mut *(*stream).ctx.cast::<&[u8]>();
        let (part, rest) = bytes.split_at(bytes.len().min(3).min(usize::try_from(count).unwrap()));
        ptr::copy_nonoverlapping(part.as_ptr(), to.cast(), part.len());
        *bytes = rest;
        i64::try_from(part.len()).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.is_active {
            self.deactivate();
        }
        // SAFETY: nothing else uses the plugin and the requests.
        unsafe {
            destroy(self.plugin);
            drop(Box::from_raw(self.host.host_data.cast::<Requests>()));
        }
    }
}

const BASS: Control = Control::Parameter(Parameter::Bass);

#[test]
fn plays_as_the_chain_does_to_the_last_bit() {
    for index in [0, 1] {
        let mut host = Host::new(index);
        assert!(host.activate(RATE_HZ.into()));
        let (mut chain, _controls) = Chain::new(RATE_HZ, &Settings::default(), Parts::default());
        for block in 0..40 {
            let input = guitar(block);
            let (mut left, mut right) = (vec![0.0; FRAMES], vec![0.0; FRAMES]);
            // Values change at the frame of their event; the calls of the chain are those of the plugin.
            let events = match block {
                20 => vec![change(37, BASS, 6.0), change(37, BASS, 7.0), change(90, BASS, -3.0)],
                _ => Vec::new(),
            };
            let whole = [(0..FRAMES, None)];
            let divided = [(0..37, None), (37..90, Some(7.0)), (90..FRAMES, Some(-3.0))];
            for (part, value) in if block == 20 { divided.to_vec() } else { whole.to_vec() } {
                value.iter().for_each(|value| chain.set(Parameter::Bass, *value).unwrap());
                for at in part.clone().step_by(Player::BLOCK) {
                    let part = at..part.end.min(at + Player::BLOCK);
                    chain.process(&input[part.clone()], &mut left[part.clone()], &mut right[part]);
                }
            }
            let outputs = host.run(&input, events);
            if index == 0 {
                left.iter_mut().zip(&right).for_each(|(left, right)| *left = 0.5 * (*left + right));
                right.fill(9.0);
            }
            assert_eq!(outputs, [left, right], "{index} {block}");
        }
        assert_eq!(host.value(BASS), -3.0);
    }
}

#[test]
fn files_are_loaded_while_it_plays_and_freed_a_second_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::new(0);
    assert!(host.activate(RATE_HZ.into()));
    for control in [Parameter::DcBlockOn, Parameter::LimiterOn].map(Control::Parameter) {
        host.run(&guitar(0), vec![change(0, control, 0.0)]);
    }
    let settle = |host: &mut Host| {
        (0..40).for_each(|block| drop(host.run(&guitar(block), Vec::new())));
        host.run(&guitar(40), Vec::new())[0].clone()
    };
    let path = model(&folder, "half.nam", 0.5);
    assert!(host.load_file(&path));
    assert_eq!(host.requests().loaded, [path]);
    let half: Vec<f32> = guitar(40).iter().map(|sample| 0.5 * sample).collect();
    assert!(largest_difference(&settle(&mut host), &half) < 1e-6);
    for wrong in ["/nowhere.nam", "/tones/readme.txt", "/tones/none", "/"] {
        assert!(!host.load_file(wrong));
        assert!(host.requests().errors.last().unwrap().contains(wrong), "{:?}", host.requests().errors);
    }
    assert!(largest_difference(&settle(&mut host), &half) < 1e-6, "an error changes nothing");
    // The model that was replaced is freed on the main thread after a second.
    assert!(host.load_file(&model(&folder, "other.nam", 1.0)));
    let second = RATE_HZ as usize / FRAMES;
    let mut callbacks = |blocks| {
        (0..blocks)
            .map(|block| {
                host.run(&guitar(block), Vec::new());
                host.called_back
            })
            .sum::<u32>()
    };
    assert_eq!([callbacks(second - 1), callbacks(2), callbacks(second)], [0, 1, 0]);
}

#[test]
fn a_preset_sets_the_parameters() {
    let folder = tempfile::tempdir().unwrap();
    model(&folder, "wire.nam", 1.0);
    let preset = folder.path().join("lead.TOML");
    fs::write(&preset, "[[model]]\nfile = 'wire.nam'\n[tone]\nbass_db = 3.5\n").unwrap();
    let host = Host::new(1);
    assert!(host.load_file(&preset.display().to_string()));
    assert_eq!((host.value(BASS), host.requests().rescans), (3.5, 1));
}

#[test]
fn a_state_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(&folder, "half.nam", 0.5);
    let mut host = Host::new(0);
    assert!(host.load_file(&path));
    let mut events = vec![change(0, BASS, 0.1), change(0, Control::Bypass, 1.0), change(0, Control::Bypass, f64::NAN)];
    // SAFETY: the plugin and the list are live.
    unsafe { params::flush(host.plugin, &raw const *Box::new(list(&mut events)), ptr::null()) };
    let saved = host.save();
    let restored = Host::new(0);
    assert!(restored.load(&saved));
    assert_eq!((restored.value(BASS), restored.value(Control::Bypass)), (f64::from(0.1_f32), 1.0));
    assert_eq!((restored.save(), restored.requests().rescans), (saved.clone(), 1));
    assert!(saved.windows(path.len()).any(|part| part == path.as_bytes()));
    // Values that a state lacks are the defaults, and files that it lacks are removed.
    assert!(restored.load(b"punctual amp 1\0"));
    assert_eq!((restored.value(BASS), restored.save()), (0.0, Host::new(0).save()));
    for damaged in [&b""[..], b"x"] {
        assert!(!restored.load(damaged));
    }
    assert!(host.activate(RATE_HZ.into()), "a loaded model does not need its file");
}

#[test]
fn a_missing_file_of_a_state_takes_nothing_else_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let half = model(&folder, "half.nam", 0.5);
    let hall = response(&folder, "hall.wav", 0);
    let host = Host::new(0);
    assert!(host.load_file(&half) && host.load_file(&hall));
    // SAFETY: the plugin is live.
    unsafe { instance(host.plugin) }.values.set(BASS, 1.0);
    let saved = host.save();
    fs::remove_file(&hall).unwrap();
    let mut restored = Host::new(0);
    assert!(!restored.load(&saved));
    let errors = &restored.requests().errors;
    assert!(errors.last().unwrap().contains("hall.wav") && !errors.last().unwrap().contains("half.nam"), "{errors:?}");
    // It keeps the path for the day when the file is there again.
    assert_eq!((restored.value(BASS), restored.save()), (1.0, saved.clone()));
    assert!(restored.activate(RATE_HZ.into()));
    let mut off =
        [Parameter::DcBlockOn, Parameter::LimiterOn].map(|own| change(0, Control::Parameter(own), 0.0)).to_vec();
    off.push(change(0, BASS, 0.0));
    restored.run(&guitar(0), off);
    (0..40).for_each(|block| drop(restored.run(&guitar(block), Vec::new())));
    let expected: Vec<f32> = guitar(40).iter().map(|sample| 0.5 * sample).collect();
    assert!(largest_difference(&restored.run(&guitar(40), Vec::new())[0], &expected) < 1e-6, "the model plays");
    response(&folder, "hall.wav", 0);
    assert!(restored.load(&saved));
    // Another file of its kind replaces a missing one.
    fs::remove_file(&hall).unwrap();
    assert!(!restored.load(&saved));
    assert!(restored.load_file(&response(&folder, "room.wav", 0)));
    let state = restored.save();
    let contains = |text: &str| state.windows(text.len()).any(|part| part == text.as_bytes());
    assert_eq!((contains("room.wav"), contains("hall.wav")), (true, false));
}

#[test]
fn a_reset_ends_echoes() {
    let echoes = |is_reset: bool| {
        let mut host = Host::new(1);
        assert!(host.activate(RATE_HZ.into()));
        let on = [(Parameter::DelayOn, 1.0), (Parameter::DelayMix, 1.0), (Parameter::ReverbOn, 1.0)];
        host.run(&guitar(0), on.map(|(own, value)| change(0, Control::Parameter(own), value)).to_vec());
        (0..100).for_each(|block| drop(host.run(&guitar(block), Vec::new())));
        if is_reset {
            let before = ALLOCATIONS.get();
            // SAFETY: the plugin is live and active.
            unsafe { reset(host.plugin) };
            assert_eq!(ALLOCATIONS.get(), before, "the audio thread allocated");
        }
        // The rest of the input is in the filters of the other stages.
        (0..20).for_each(|_| drop(host.run(&[0.0; FRAMES], Vec::new())));
        let silence = (0..100).flat_map(|_| host.run(&[0.0; FRAMES], Vec::new())[0].clone());
        silence.map(f32::abs).fold(0.0, f32::max)
    };
    let (without, with) = (echoes(false), echoes(true));
    assert!(without > 0.01 && with < without / 100.0, "{without} {with}");
}

#[test]
fn another_latency_is_reported_by_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(&folder, "wire.nam", 1.0);
    let mut host = Host::new(0);
    assert!(!host.activate(7_999.0));
    assert!(host.activate(44_100.0));
    assert_eq!((host.latency(), host.requests().latencies), (0, 0));
    assert!(host.load_file(&path));
    host.run(&guitar(0), Vec::new());
    assert_eq!((host.requests().restarts, host.requests().latencies), (1, 0));
    host.deactivate();
    assert!(host.activate(44_100.0));
    assert_eq!((host.latency() > 0, host.requests().latencies), (true, 1));
    host.run(&guitar(0), Vec::new());
    assert_eq!(host.requests().restarts, 1);
}

#[test]
fn a_bypassed_plugin_passes_the_guitar_through() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::new(1);
    assert!(host.load_file(&model(&folder, "loud.nam", 4.0)) && host.activate(RATE_HZ.into()));
    let changes = [Parameter::DcBlockOn, Parameter::LimiterOn].map(|own| change(0, Control::Parameter(own), 0.0));
    host.run(&guitar(0), changes.to_vec());
    host.run(&guitar(0), vec![change(0, Control::Bypass, 1.0)]);
    (0..40).for_each(|block| drop(host.run(&guitar(block), Vec::new())));
    assert!(largest_difference(&host.run(&guitar(40), Vec::new())[1], &guitar(40)) < 1e-6);
}

#[test]
fn unknown_plugins_and_factories_are_refused() {
    // SAFETY: the names end in NUL; nothing but the version of the host is read.
    unsafe {
        assert!(factory(c"none".as_ptr()).is_null());
        let host = Host::new(0);
        assert!(create(ptr::null(), &raw const *host.host, c"punctual.amp ".as_ptr()).is_null());
        assert!(extension(host.plugin, c"none".as_ptr()).is_null());
        assert!(plugin_descriptor(ptr::null(), 2).is_null());
    }
}

/// The data of a host that searches for files.
#[derive(Default)]
struct Found(Vec<String>);

/// The data behind a handle.
fn found<'a>(data: *mut c_void) -> &'a mut Found {
    // SAFETY: the data of both handles are live, and the tests have one thread.
    unsafe { &mut *data.cast::<Found>() }
}

unsafe extern "C" fn found_kind(
    indexer: *const clap_preset_discovery_indexer,
    kind: *const clap_preset_discovery_filetype,
) -> bool {
    // SAFETY: the plugin passes live structures.
    unsafe { found((*indexer).indexer_data).0.push(owned((*kind).file_extension)) };
    true
}

unsafe extern "C" fn found_folder(
    indexer: *const clap_preset_discovery_indexer,
    folder: *const clap_preset_discovery_location,
) -> bool {
    // SAFETY: as above.
    unsafe { found((*indexer).indexer_data).0.push(owned((*folder).location)) };
    true
}

unsafe extern "C" fn found_preset(
    receiver: *const clap_preset_discovery_metadata_receiver,
    name: *const c_char,
    _: *const c_char,
) -> bool {
    // SAFETY: as above.
    unsafe { found((*receiver).receiver_data).0.push(owned(name)) };
    true
}

unsafe extern "C" fn found_plugin(
    receiver: *const clap_preset_discovery_metadata_receiver,
    plugin: *const clap_universal_plugin_id,
) {
    // SAFETY: as above.
    unsafe { found((*receiver).receiver_data).0.push(owned((*plugin).id)) };
}

#[test]
fn the_browser_of_a_host_finds_files() {
    let mut data = Found::default();
    let indexer = clap_preset_discovery_indexer {
        clap_version: CLAP_VERSION,
        name: ptr::null(),
        vendor: ptr::null(),
        url: ptr::null(),
        version: ptr::null(),
        indexer_data: (&raw mut data).cast(),
        declare_filetype: Some(found_kind),
        declare_location: Some(found_folder),
        declare_soundpack: None,
        get_extension: None,
    };
    // SAFETY: the indexer is live.
    assert!(unsafe { discovery::declare(&raw const indexer, Some(Path::new("/tones"))) });
    assert_eq!(data.0, ["nam", "json", "aidax", "wav", "flac", "aif", "aiff", "toml", "/tones"]);

    let mut data = Found::default();
    let receiver = clap_preset_discovery_metadata_receiver {
        receiver_data: (&raw mut data).cast(),
        on_error: None,
        begin_preset: Some(found_preset),
        add_plugin_id: Some(found_plugin),
        set_soundpack_id: None,
        set_flags: None,
        add_creator: None,
        set_description: None,
        set_timestamps: None,
        add_feature: None,
        add_extra_info: None,
    };
    for (path, is_known) in [(c"/tones/my lead.nam", true), (c"/tones/readme.md", false)] {
        // SAFETY: the text ends in NUL, and the receiver is live.
        let known = unsafe {
            discovery::metadata(ptr::null(), CLAP_PRESET_DISCOVERY_LOCATION_FILE, path.as_ptr(), &raw const receiver)
        };
        assert_eq!(known, is_known, "{path:?}");
    }
    assert_eq!(data.0, ["my lead", "punctual.amp", "punctual.amp-stereo"]);
}
