//! A small host: it calls the plugin through the C interface as other hosts do.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
};

use amp::{Chain, Parameter, Parts, Rig, rig::RigSpec};

use super::*;
use crate::{
    abi::{
        counting::ALLOCATIONS,
        test_files::{FRAMES, RATE_HZ, guitar, largest_difference, model, response},
    },
    messages::{Message, Writer, read},
};

/// The requests of the plugin, and the numbers of names.
#[derive(Default)]
struct HostState {
    names: Vec<String>,
    work: VecDeque<Vec<u8>>,
    answers: VecDeque<Vec<u8>>,
    stored: BTreeMap<u32, (u32, Vec<u8>)>,
    /// Put before each path of a state.
    prefix: String,
}

/// The state behind a handle of this host.
fn state<'a>(handle: *mut c_void) -> &'a mut HostState {
    // SAFETY: every handle of this host is its live state, and the tests have one thread.
    unsafe { &mut *handle.cast::<HostState>() }
}

/// The bytes that the plugin passes.
fn passed<'a>(data: *const c_void, size: usize) -> &'a [u8] {
    // SAFETY: the plugin passes live data of this size.
    unsafe { std::slice::from_raw_parts(data.cast(), size) }
}

fn text(text: *const c_char) -> String {
    // SAFETY: the plugin passes texts that end in NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn map(handle: *mut c_void, name: *const c_char) -> u32 {
    let (names, name) = (&mut state(handle).names, text(name));
    let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    u32::try_from(place).unwrap() + 1
}

unsafe extern "C" fn schedule_work(handle: *mut c_void, size: u32, data: *const c_void) -> c_int {
    let before = ALLOCATIONS.get();
    state(handle).work.push_back(passed(data, size as usize).to_vec());
    // A real host has memory for that.
    ALLOCATIONS.set(before);
    SUCCESS
}

unsafe extern "C" fn respond(handle: *mut c_void, size: u32, data: *const c_void) -> c_int {
    state(handle).answers.push_back(passed(data, size as usize).to_vec());
    SUCCESS
}

unsafe extern "C" fn store(
    handle: *mut c_void,
    key: u32,
    value: *const c_void,
    size: usize,
    kind: u32,
    _: u32,
) -> c_int {
    state(handle).stored.insert(key, (kind, passed(value, size).to_vec()));
    SUCCESS
}

unsafe extern "C" fn retrieve(
    handle: *mut c_void,
    key: u32,
    size: *mut usize,
    kind: *mut u32,
    _: *mut u32,
) -> *const c_void {
    let Some((stored_kind, value)) = state(handle).stored.get(&key) else { return ptr::null() };
    // SAFETY: the plugin passes places for the results.
    unsafe { (*size, *kind) = (value.len(), *stored_kind) };
    value.as_ptr().cast()
}

unsafe extern "C" fn abstract_path(handle: *mut c_void, path: *const c_char) -> *mut c_char {
    let prefix = &state(handle).prefix;
    CString::new(text(path).strip_prefix(prefix).unwrap().to_owned()).unwrap().into_raw()
}

unsafe extern "C" fn absolute_path(handle: *mut c_void, path: *const c_char) -> *mut c_char {
    CString::new(format!("{}{}", state(handle).prefix, text(path))).unwrap().into_raw()
}

unsafe extern "C" fn free_path(_: *mut c_void, path: *mut c_char) {
    // SAFETY: the path comes from one of the two functions above.
    drop(unsafe { CString::from_raw(path) });
}

/// A host with one instance of a plugin.
struct Host {
    descriptor: &'static Lv2Descriptor,
    handle: *mut c_void,
    state: Box<UnsafeCell<HostState>>,
    urids: Urids,
    variant: Variant,
    controls: BTreeMap<usize, Box<UnsafeCell<f32>>>,
    /// Sequences to and from the plugin, aligned as atoms.
    atoms: [Box<[u64; 2048]>; 2],
    audio: [Vec<f32>; 3],
    files: Vec<(FileProperty, String)>,
}

impl Host {
    fn new(index: u32) -> Self {
        // SAFETY: the library returns a constant or null.
        let descriptor = unsafe { lv2_descriptor(index).as_ref() }.unwrap();
        let state = Box::new(UnsafeCell::new(HostState::default()));
        let handle = state.get().cast::<c_void>();
        let (uri_map, schedule) = (UridMap { handle, map }, Schedule { handle, schedule_work });
        let features = [
            Feature {
                uri: c"http://lv2plug.in/ns/ext/urid#map".as_ptr(),
                data: (&raw const uri_map).cast_mut().cast(),
            },
            Feature {
                uri: c"http://lv2plug.in/ns/ext/worker#schedule".as_ptr(),
                data: (&raw const schedule).cast_mut().cast(),
            },
        ];
        let list = [&raw const features[0], &raw const features[1], ptr::null()];
        // SAFETY: the features are live, and have the data of their URI.
        let instance =
            unsafe { (descriptor.instantiate)(descriptor, f64::from(RATE_HZ), c"/".as_ptr(), list.as_ptr()) };
        assert!(!instance.is_null());
        let urids = Urids::new(|name| {
            let name = CString::new(name).unwrap();
            // SAFETY: the name ends in NUL.
            unsafe { map(handle, name.as_ptr()) }
        });
        let variant = VARIANTS[index as usize];
        let mut host = Self {
            descriptor,
            handle: instance,
            state,
            urids,
            variant,
            controls: BTreeMap::new(),
            atoms: [Box::new([0; 2048]), Box::new([0; 2048])],
            audio: [const { Vec::new() }; 3].map(|_: Vec<f32>| vec![0.0; FRAMES]),
            files: Vec::new(),
        };
        for (index, port) in variant.ports().enumerate() {
            let data: *mut c_void = match port {
                Port::Control => host.atoms[0].as_mut_ptr().cast(),
                Port::Notify => host.atoms[1].as_mut_ptr().cast(),
                Port::Input => host.audio[0].as_mut_ptr().cast(),
                Port::Output(output) => host.audio[1 + output].as_mut_ptr().cast(),
                Port::Enabled | Port::Latency | Port::Parameter(_) => {
                    let value = if let Port::Parameter(parameter) = port { parameter.info().default } else { 1.0 };
                    host.controls.entry(index).or_insert_with(|| Box::new(UnsafeCell::new(value))).get().cast()
                }
            };
            host.connect(index, data);
        }
        host.send(&[]);
        host
    }

    fn connect(&mut self, index: usize, data: *mut c_void) {
        // SAFETY: the instance is live, and so is the memory as long as the host.
        unsafe { (self.descriptor.connect_port)(self.handle, u32::try_from(index).unwrap(), data) };
    }

    fn port(&self, wanted: Port) -> usize {
        self.variant.ports().position(|port| port == wanted).unwrap()
    }

    fn control(&self, port: Port) -> *mut f32 {
        self.controls[&self.port(port)].get()
    }

    fn set(&mut self, port: Port, value: f32) {
        // SAFETY: no other reference to the value exists.
        unsafe { *self.control(port) = value };
    }

    fn get(&self, port: Port) -> f32 {
        // SAFETY: no other reference to the value exists.
        unsafe { *self.control(port) }
    }

    /// Bytes of a sequence.
    fn bytes(atoms: &mut [u64; 2048]) -> &mut [u8] {
        // SAFETY: any u64 is eight bytes.
        unsafe { std::slice::from_raw_parts_mut(atoms.as_mut_ptr().cast(), 8 * atoms.len()) }
    }

    /// Puts messages into the control port for the next call.
    fn send(&mut self, files: &[(FileProperty, &str)]) {
        let mut writer = Writer::new(Self::bytes(&mut self.atoms[0]), &self.urids).unwrap();
        for (file, path) in files {
            assert!(writer.set(*file, path.as_bytes()));
        }
    }

    /// Calls the plugin for one block of this input, which must not allocate. Then works and answers as a host does.
    fn run(&mut self, input: &[f32]) -> [Vec<f32>; 2] {
        self.audio[0].copy_from_slice(input);
        let notify = Self::bytes(&mut self.atoms[1]);
        let space = u32::try_from(notify.len() - 8).unwrap();
        notify[..4].copy_from_slice(&space.to_ne_bytes());
        let before = ALLOCATIONS.get();
        // SAFETY: all ports are connected, and the buffers have this many frames.
        unsafe { (self.descriptor.run)(self.handle, u32::try_from(FRAMES).unwrap()) };
        assert_eq!(ALLOCATIONS.get(), before, "the audio thread allocated");
        let told = Self::bytes(&mut self.atoms[1]);
        let size = u32::from_ne_bytes(*told.first_chunk().unwrap()) as usize;
        let told: Vec<_> = read(&told[8..8 + size], &self.urids)
            .map(|message| match message {
                Message::Set(file, path) => (file, String::from_utf8(path.to_vec()).unwrap()),
                Message::Get(_) => panic!("the plugin asks for nothing"),
            })
            .collect();
        self.files.extend(told);
        self.send(&[]);
        self.work();
        [self.audio[1].clone(), self.audio[2].clone()]
    }

    fn work(&mut self) {
        let handle = self.state.get().cast::<c_void>();
        // SAFETY: the library returns the interface for this URI, which is a constant.
        let worker = unsafe {
            (self.descriptor.extension_data)(c"http://lv2plug.in/ns/ext/worker#interface".as_ptr())
                .cast::<WorkerInterface>()
                .as_ref()
        };
        let worker = worker.unwrap();
        while let Some(message) = state(handle).work.pop_front() {
            let size = u32::try_from(message.len()).unwrap();
            // SAFETY: the message is live.
            assert_eq!(unsafe { (worker.work)(self.handle, respond, handle, size, message.as_ptr().cast()) }, SUCCESS);
        }
        while let Some(answer) = state(handle).answers.pop_front() {
            let size = u32::try_from(answer.len()).unwrap();
            // SAFETY: the answer is live.
            assert_eq!(unsafe { (worker.work_response)(self.handle, size, answer.as_ptr().cast()) }, SUCCESS);
        }
    }

    /// Saves or restores the state, with or without translated paths.
    fn keep(&mut self, is_saved: bool, prefix: Option<&str>) -> c_int {
        let handle = self.state.get().cast::<c_void>();
        state(handle).prefix = prefix.unwrap_or_default().to_owned();
        let (map, free) = (MapPath { handle, abstract_path, absolute_path }, FreePath { handle, free_path });
        let features = [
            Feature {
                uri: c"http://lv2plug.in/ns/ext/state#mapPath".as_ptr(),
                data: (&raw const map).cast_mut().cast(),
            },
            Feature {
                uri: c"http://lv2plug.in/ns/ext/state#freePath".as_ptr(),
                data: (&raw const free).cast_mut().cast(),
            },
        ];
        let list = match prefix {
            Some(_) => vec![&raw const features[0], &raw const features[1], ptr::null()],
            None => vec![ptr::null()],
        };
        // SAFETY: the library returns the interface for this URI, which is a constant; the features are live.
        unsafe {
            let interface = (self.descriptor.extension_data)(c"http://lv2plug.in/ns/ext/state#interface".as_ptr())
                .cast::<StateInterface>()
                .as_ref()
                .unwrap();
            match is_saved {
                true => (interface.save)(self.handle, store, handle, 0, list.as_ptr()),
                false => (interface.restore)(self.handle, retrieve, handle, 0, list.as_ptr()),
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the instance.
        unsafe { (self.descriptor.cleanup)(self.handle) };
    }
}

/// The chain as `punctual amp` plays it.
fn chain() -> (Chain, amp::Controls) {
    Chain::new(RATE_HZ, &Settings::default(), Parts::default())
}

#[test]
fn plays_as_the_chain_does_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = model(&folder, "half.nam", 0.5);
    for (index, is_in_place) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut host = Host::new(index);
        if is_in_place {
            let input = host.audio[0].as_mut_ptr().cast();
            host.connect(host.port(Port::Output(0)), input);
        }
        let (mut chain, mut controls) = chain();
        for block in 0..40 {
            match block {
                // The file is loaded between this block and the next.
                5 => host.send(&[(FileProperty::Model, &path)]),
                6 => {
                    let spec = RigSpec {
                        models: vec![(path.clone().into(), amp::preset::ModelPart::new(path.clone()))],
                        ..RigSpec::default()
                    };
                    let (parts, _) = Rig::load(spec, |path| fs::read(path)).unwrap().parts(RATE_HZ).unwrap();
                    let [first, _] = parts.models;
                    controls.swap_model(0, first).unwrap();
                }
                _ => {}
            }
            if block == 20 {
                host.set(Port::Parameter(Parameter::Bass), 6.0);
                controls.set(Parameter::Bass, 6.0).unwrap();
            }
            let input = guitar(block);
            let (mut left, mut right) = (vec![0.0; FRAMES], vec![0.0; FRAMES]);
            chain.process(&input, &mut left, &mut right);
            let outputs = host.run(&input);
            let first = if is_in_place { &host.audio[0] } else { &outputs[0] };
            assert_eq!(*first, left, "plugin {index}, block {block}");
            if index == 1 {
                assert_eq!(outputs[1], right, "block {block}");
            }
        }
        assert_eq!(host.files.iter().filter(|(file, told)| *file == FileProperty::Model && *told == path).count(), 1);
        assert_eq!(host.get(Port::Latency), 0.0);
    }
}

#[test]
fn a_reverb_response_is_loaded_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = response(&folder, "echo.wav", 63);
    let mut host = Host::new(1);
    host.set(Port::Parameter(Parameter::ReverbIrMix), 1.0);
    let settle = |host: &mut Host| (0..40).for_each(|block| drop(host.run(&guitar(block))));
    let dry = |host: &mut Host| {
        settle(host);
        let input = guitar(40);
        largest_difference(&host.run(&input)[0], &input)
    };
    assert!(dry(&mut host) < 0.01, "without a response, the signal passes through");
    host.send(&[(FileProperty::ReverbIr, &path)]);
    assert!(dry(&mut host) > 0.1);
    host.send(&[(FileProperty::ReverbIr, "")]);
    assert!(dry(&mut host) < 0.01);
}

#[test]
fn a_file_that_cannot_be_played_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let good = model(&folder, "good.nam", 0.5);
    let bad = folder.path().join("bad.nam").display().to_string();
    fs::write(&bad, "{").unwrap();
    let mut host = Host::new(0);
    host.send(&[(FileProperty::Model, &good)]);
    host.run(&guitar(0));
    host.run(&guitar(1));
    let before = host.files.len();
    for wrong in [&bad, "/nowhere.nam", "/", "/dev/zero"] {
        host.send(&[(FileProperty::Model, wrong)]);
        host.run(&guitar(2));
        host.run(&guitar(3));
        assert_eq!(host.files.last().map(|(_, path)| &**path), Some(""), "the reverb is told last");
        assert!(host.files[before..].contains(&(FileProperty::Model, good.clone())), "{wrong}: {:?}", host.files);
    }
    // A path that is too long is not loaded, and the next one is.
    host.send(&[(FileProperty::Model, &"x".repeat(PATH_BYTES + 1))]);
    host.run(&guitar(4));
    host.send(&[(FileProperty::Model, "")]);
    host.run(&guitar(5));
    host.run(&guitar(6));
    assert_eq!(host.files[host.files.len() - 3], (FileProperty::Model, String::new()), "removed");
}

#[test]
fn a_state_is_restored_with_translated_paths() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let path = model(&folder, "half.nam", 0.5);
    let moved = model(&other, "half.nam", 0.25);
    let preset = folder.path().join("lead.toml");
    fs::write(&preset, "[[model]]\nfile = 'half.nam'\n[[model]]\nfile = 'half.nam'\n").unwrap();
    let mut host = Host::new(0);
    host.send(&[(FileProperty::Model, &path)]);
    host.run(&guitar(0));
    assert_eq!(host.keep(true, Some(&folder.path().display().to_string())), SUCCESS);
    let stored: Vec<_> = state(host.state.get().cast()).stored.values().map(|(_, value)| value.clone()).collect();
    assert_eq!(stored, [b"/half.nam\0".to_vec()]);
    // The file moved with the session to another folder; a preset that was chosen meanwhile is gone.
    host.send(&[(FileProperty::Preset, &preset.display().to_string())]);
    host.run(&guitar(1));
    assert_eq!(host.keep(false, Some(&other.path().display().to_string())), SUCCESS);
    host.files.clear();
    host.run(&guitar(2));
    assert_eq!(
        host.files,
        [
            (FileProperty::Preset, String::new()),
            (FileProperty::Model, moved.clone()),
            (FileProperty::Cabinet, String::new()),
            (FileProperty::ReverbIr, String::new())
        ]
    );
    // Without translation, the path of this machine.
    assert_eq!(host.keep(true, None), SUCCESS);
    let stored: Vec<_> = state(host.state.get().cast()).stored.values().map(|(_, value)| value.clone()).collect();
    assert_eq!(stored, [[moved.as_bytes(), b"\0"].concat()]);
    fs::remove_file(&moved).unwrap();
    assert_eq!(host.keep(false, None), FAILURE, "the file is gone");
}

#[test]
fn a_bypassed_plugin_passes_the_guitar_through() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::new(1);
    host.send(&[(FileProperty::Model, &model(&folder, "loud.nam", 4.0))]);
    for parameter in [Parameter::DcBlockOn, Parameter::LimiterOn] {
        host.set(Port::Parameter(parameter), 0.0);
    }
    host.set(Port::Parameter(Parameter::InputGain), 12.0);
    (0..60).for_each(|block| drop(host.run(&guitar(block))));
    assert!(host.run(&guitar(60))[0].iter().zip(guitar(60)).any(|(out, dry)| (out - dry).abs() > 0.5));
    host.set(Port::Enabled, 0.0);
    (61..120).for_each(|block| drop(host.run(&guitar(block))));
    let outputs = host.run(&guitar(120));
    let furthest = |out: &[f32]| out.iter().zip(guitar(120)).map(|(out, dry)| (out - dry).abs()).fold(0.0, f32::max);
    assert!(furthest(&outputs[0]) < 1e-6 && furthest(&outputs[1]) < 1e-6, "{}", furthest(&outputs[0]));
    host.set(Port::Enabled, 1.0);
    (121..180).for_each(|block| drop(host.run(&guitar(block))));
    assert!(host.run(&guitar(180))[0].iter().zip(guitar(180)).any(|(out, dry)| (out - dry).abs() > 0.5));
}

#[test]
fn values_out_of_range_are_the_nearest_allowed_ones() {
    let (mut host, mut same) = (Host::new(0), Host::new(0));
    for (parameter, wrong, nearest) in
        [(Parameter::Bass, 99.0, 15.0), (Parameter::Routing, 0.7, 1.0), (Parameter::Treble, f32::NAN, 0.0)]
    {
        host.set(Port::Parameter(parameter), wrong);
        same.set(Port::Parameter(parameter), nearest);
    }
    for block in 0..20 {
        assert_eq!(host.run(&guitar(block)), same.run(&guitar(block)));
    }
}

#[test]
fn old_parts_are_freed_after_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::new(0);
    for (block, name) in ["a", "b"].into_iter().enumerate() {
        host.send(&[(FileProperty::Model, &model(&folder, name, 1.0))]);
        host.run(&guitar(block));
    }
    let mut collected = 0;
    for block in 2..1000 {
        // The host works on the message in the same call.
        host.audio[0].copy_from_slice(&guitar(block));
        // SAFETY: all ports are connected, and the buffers have this many frames.
        unsafe { (host.descriptor.run)(host.handle, u32::try_from(FRAMES).unwrap()) };
        collected += state(host.state.get().cast()).work.iter().filter(|message| **message == [COLLECT]).count();
        host.work();
    }
    assert_eq!(collected, 1);
}

#[test]
fn a_host_without_features_or_buffers_plays_nothing_and_loses_nothing() {
    let descriptor = &DESCRIPTORS[1];
    // SAFETY: the list of features ends at once; no port is connected; the state has no values.
    unsafe {
        let none = [ptr::null()];
        let instance = (descriptor.instantiate)(descriptor, 48_000.0, c"/".as_ptr(), none.as_ptr());
        assert!(!instance.is_null());
        (descriptor.connect_port)(instance, 1000, ptr::null_mut());
        (descriptor.run)(instance, 1000);
        let interface = (descriptor.extension_data)(c"http://lv2plug.in/ns/ext/state#interface".as_ptr())
            .cast::<StateInterface>()
            .as_ref()
            .unwrap();
        assert_eq!((interface.save)(instance, store, ptr::null_mut(), 0, ptr::null()), FAILURE);
        assert_eq!((interface.restore)(instance, retrieve, ptr::null_mut(), 0, ptr::null()), FAILURE);
        (descriptor.cleanup)(instance);
    }
}

#[test]
fn unknown_plugins_rates_and_interfaces_are_refused() {
    assert!(lv2_descriptor(2).is_null());
    for (rate, hz) in
        [(44_100.0, Some(44_100)), (47_952.048, Some(47_952)), (0.0, None), (f64::NAN, None), (1e12, None)]
    {
        assert_eq!(whole_rate(rate), hz);
    }
    let descriptor = &DESCRIPTORS[0];
    // SAFETY: the list of features ends at once, and the URI ends in NUL.
    unsafe {
        let none = [ptr::null()];
        assert!((descriptor.instantiate)(descriptor, 0.5, c"/".as_ptr(), none.as_ptr()).is_null());
        assert!((descriptor.extension_data)(c"http://example.org/none".as_ptr()).is_null());
    }
    let names: Vec<String> = DESCRIPTORS.iter().map(|descriptor| text(descriptor.uri)).collect();
    assert_eq!(names, VARIANTS.map(|variant| variant.uri));
}
