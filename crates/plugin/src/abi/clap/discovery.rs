//! The files that the browser of a host offers: models, cabinets and presets in the user's folder
//! (`clap/factory/preset-discovery.h`).

use std::{
    env,
    ffi::{CStr, CString, OsStr, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr,
};

use clap_sys::{
    factory::preset_discovery::{
        CLAP_PRESET_DISCOVERY_IS_USER_CONTENT, CLAP_PRESET_DISCOVERY_LOCATION_FILE, clap_preset_discovery_factory,
        clap_preset_discovery_filetype, clap_preset_discovery_indexer, clap_preset_discovery_location,
        clap_preset_discovery_metadata_receiver, clap_preset_discovery_provider,
        clap_preset_discovery_provider_descriptor,
    },
    universal_plugin_id::clap_universal_plugin_id,
    version::CLAP_VERSION,
};

use super::DESCRIPTORS;
use crate::ports::FileProperty;

static DESCRIPTOR: clap_preset_discovery_provider_descriptor = clap_preset_discovery_provider_descriptor {
    clap_version: CLAP_VERSION,
    id: c"punctual.files".as_ptr(),
    name: c"Punctual Amp".as_ptr(),
    vendor: c"the punctual developers".as_ptr(),
};

pub(super) static FACTORY: clap_preset_discovery_factory =
    clap_preset_discovery_factory { count: Some(count), get_descriptor: Some(descriptor), create: Some(create) };

unsafe extern "C" fn count(_: *const clap_preset_discovery_factory) -> u32 {
    1
}

unsafe extern "C" fn descriptor(
    _: *const clap_preset_discovery_factory,
    index: u32,
) -> *const clap_preset_discovery_provider_descriptor {
    if index == 0 { &raw const DESCRIPTOR } else { ptr::null() }
}

/// A provider of files for one host.
struct Provider {
    /// The handle of the host.
    provider: clap_preset_discovery_provider,
    indexer: *const clap_preset_discovery_indexer,
}

unsafe extern "C" fn create(
    _: *const clap_preset_discovery_factory,
    indexer: *const clap_preset_discovery_indexer,
    id: *const c_char,
) -> *const clap_preset_discovery_provider {
    // SAFETY: the host passes a text that ends in NUL, and so is the constant.
    if unsafe { CStr::from_ptr(id) != CStr::from_ptr(DESCRIPTOR.id) } {
        return ptr::null();
    }
    let provider = clap_preset_discovery_provider {
        desc: &raw const DESCRIPTOR,
        provider_data: ptr::null_mut(),
        init: Some(init),
        destroy: Some(destroy),
        get_metadata: Some(metadata),
        get_extension: Some(extension),
    };
    let own = Box::into_raw(Box::new(Provider { provider, indexer }));
    // SAFETY: the provider is live, and nobody else has its address yet.
    unsafe {
        (*own).provider.provider_data = own.cast();
        &raw const (*own).provider
    }
}

unsafe extern "C" fn destroy(provider: *const clap_preset_discovery_provider) {
    // SAFETY: the handle comes from `create`, and the host calls this once, as the last function.
    drop(unsafe { Box::from_raw((*provider).provider_data.cast::<Provider>()) });
}

unsafe extern "C" fn init(provider: *const clap_preset_discovery_provider) -> bool {
    // SAFETY: the host passes a live provider.
    let indexer = unsafe { (*(*provider).provider_data.cast::<Provider>()).indexer };
    // SAFETY: the indexer of the host outlives the provider.
    unsafe { declare(indexer, folder().as_deref()) }
}

/// The folder of the user's files, if it exists: `punctual` in the data folder of the XDG base directory specification.
fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("punctual")).filter(|folder| folder.is_dir())
}

/// Declares the kinds of files and the folder to the host.
///
/// # Safety
/// The indexer is live.
pub(super) unsafe fn declare(indexer: *const clap_preset_discovery_indexer, folder: Option<&Path>) -> bool {
    // SAFETY: the caller guarantees the indexer, which copies all arguments.
    unsafe {
        let (Some(add_kind), Some(add_folder)) = ((*indexer).declare_filetype, (*indexer).declare_location) else {
            return false;
        };
        for (ending, file) in FileProperty::endings() {
            let (Ok(name), Ok(ending)) = (CString::new(file.name()), CString::new(ending)) else { return false };
            let kind = clap_preset_discovery_filetype {
                name: name.as_ptr(),
                description: ptr::null(),
                file_extension: ending.as_ptr(),
            };
            if !add_kind(indexer, &raw const kind) {
                return false;
            }
        }
        let Some(Ok(folder)) = folder.map(|folder| CString::new(folder.as_os_str().as_bytes())) else { return true };
        let location = clap_preset_discovery_location {
            flags: CLAP_PRESET_DISCOVERY_IS_USER_CONTENT,
            name: c"Models, cabinets and presets".as_ptr(),
            kind: CLAP_PRESET_DISCOVERY_LOCATION_FILE,
            location: folder.as_ptr(),
        };
        add_folder(indexer, &raw const location)
    }
}

/// Describes a file: its name, and the plugins that load it.
pub(super) unsafe extern "C" fn metadata(
    _: *const clap_preset_discovery_provider,
    kind: u32,
    location: *const c_char,
    receiver: *const clap_preset_discovery_metadata_receiver,
) -> bool {
    if kind != CLAP_PRESET_DISCOVERY_LOCATION_FILE || location.is_null() {
        return false;
    }
    // SAFETY: the host passes a text that ends in NUL.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(location) }.to_bytes()));
    let (Some(_), Some(stem)) = (FileProperty::of(path), path.file_stem()) else { return false };
    let Ok(name) = CString::new(stem.as_bytes()) else { return false };
    // SAFETY: the receiver is live and copies all arguments.
    unsafe {
        let (Some(begin), Some(add_plugin)) = ((*receiver).begin_preset, (*receiver).add_plugin_id) else {
            return false;
        };
        if !begin(receiver, name.as_ptr(), ptr::null()) {
            return false;
        }
        for plugin in &DESCRIPTORS {
            let id = clap_universal_plugin_id { abi: c"clap".as_ptr(), id: plugin.id };
            add_plugin(receiver, &raw const id);
        }
    }
    true
}

unsafe extern "C" fn extension(_: *const clap_preset_discovery_provider, _: *const c_char) -> *const c_void {
    ptr::null()
}
