//! The parameters in the interface of CLAP (`clap/ext/params.h`).

use std::{
    ffi::{CStr, c_char},
    ptr,
};

use clap_sys::{
    events::{clap_input_events, clap_output_events},
    ext::params::{
        CLAP_PARAM_IS_AUTOMATABLE, CLAP_PARAM_IS_BYPASS, CLAP_PARAM_IS_ENUM, CLAP_PARAM_IS_STEPPED, clap_param_info,
        clap_plugin_params,
    },
    plugin::clap_plugin,
};

use super::{instance, number, text};
use crate::control::Control;

pub(super) static PARAMS: clap_plugin_params = clap_plugin_params {
    count: Some(count),
    get_info: Some(info),
    get_value: Some(value),
    value_to_text: Some(value_to_text),
    text_to_value: Some(text_to_value),
    flush: Some(flush),
};

unsafe extern "C" fn count(_: *const clap_plugin) -> u32 {
    number(Control::all().len())
}

unsafe extern "C" fn info(_: *const clap_plugin, index: u32, to: *mut clap_param_info) -> bool {
    let Some(control) = Control::all().nth(index as usize) else { return false };
    let [least, most, default] = control.range().map(f64::from);
    let flags = match control {
        Control::Bypass => CLAP_PARAM_IS_BYPASS | CLAP_PARAM_IS_STEPPED,
        Control::Parameter(parameter) if parameter.is_knob() => 0,
        Control::Parameter(_) => CLAP_PARAM_IS_STEPPED | CLAP_PARAM_IS_ENUM,
    };
    // SAFETY: the host passes space for the result.
    unsafe {
        *to = clap_param_info {
            id: control.id(),
            flags: flags | CLAP_PARAM_IS_AUTOMATABLE,
            cookie: ptr::null_mut(),
            name: text(&control.name()),
            module: text(control.group()),
            min_value: least,
            max_value: most,
            default_value: default,
        };
    }
    true
}

unsafe extern "C" fn value(plugin: *const clap_plugin, id: u32, value: *mut f64) -> bool {
    // SAFETY: the host passes a live instance.
    let values = &unsafe { instance(plugin) }.values;
    let Some(control) = values.control(id) else { return false };
    // SAFETY: the host passes space for the result.
    unsafe { *value = values.get(control).into() };
    true
}

unsafe extern "C" fn value_to_text(
    plugin: *const clap_plugin,
    id: u32,
    value: f64,
    to: *mut c_char,
    capacity: u32,
) -> bool {
    // SAFETY: the host passes a live instance.
    let control = unsafe { instance(plugin) }.values.control(id);
    let text = control.and_then(|control| Some(control.to_text(control.nearest_to(value)?)));
    let Some(text) = text.filter(|text| text.len() < capacity as usize) else { return false };
    // SAFETY: the host passes space for as many characters as it says.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        *to.add(text.len()) = 0;
    }
    true
}

unsafe extern "C" fn text_to_value(plugin: *const clap_plugin, id: u32, text: *const c_char, value: *mut f64) -> bool {
    // SAFETY: the host passes a live instance, and a text that ends in NUL.
    let (control, text) = unsafe { (instance(plugin).values.control(id), CStr::from_ptr(text)) };
    let read = control.zip(text.to_str().ok()).and_then(|(control, text)| control.from_text(text));
    let Some(read) = read else { return false };
    // SAFETY: the host passes space for the result.
    unsafe { *value = read.into() };
    true
}

pub(super) unsafe extern "C" fn flush(
    plugin: *const clap_plugin,
    events: *const clap_input_events,
    _: *const clap_output_events,
) {
    // SAFETY: the host passes a live instance and a live list.
    unsafe { instance(plugin).set_by(events, 0, u32::MAX) };
}
