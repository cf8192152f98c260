//! The state of an instance in bytes, for CLAP hosts: texts that end in NUL, which paths cannot contain. The first one is
//! `punctual amp 1`; then follow pairs of a key and a value.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    str,
};

use crate::{
    control::{Control, Values},
    ports::FileProperty,
};

/// The first text: the format and its version.
const HEAD: &[u8] = b"punctual amp 1";
/// Largest state, bytes: far more than all parameters and paths take.
pub const MAX_BYTES: usize = 1 << 20;

/// The values and the files as bytes.
pub fn write<'a>(values: &Values, file: impl Fn(FileProperty) -> Option<&'a Path>) -> Vec<u8> {
    let mut texts = vec![HEAD.to_vec()];
    for control in Control::all() {
        texts.extend([control.key().into(), format!("{:?}", values.get(control)).into_bytes()]);
    }
    for property in FileProperty::ALL {
        if let Some(path) = file(property) {
            texts.extend([property.uri().into(), path.as_os_str().as_bytes().to_vec()]);
        }
    }
    texts.into_iter().flat_map(|text| [text, vec![0]].concat()).collect()
}

/// A state that was read.
#[derive(Debug, Default, PartialEq)]
pub struct State {
    /// The values of all controls that it has.
    pub values: Vec<(Control, f64)>,
    /// The files that it has.
    pub files: Vec<(FileProperty, PathBuf)>,
}

/// Reads a state. Keys of later versions are left out.
///
/// # Errors
/// A sentence for the user: the state is damaged or has another format.
pub fn read(bytes: &[u8]) -> Result<State, String> {
    let mut texts = bytes.split(|byte| *byte == 0);
    if texts.next() != Some(HEAD) || bytes.last() != Some(&0) {
        return Err("the state is not one of this plugin, or it is damaged".to_owned());
    }
    let mut state = State::default();
    while let (Some(key), Some(value)) = (texts.next(), texts.next()) {
        if let Some(file) = FileProperty::ALL.into_iter().find(|file| file.uri().as_bytes() == key) {
            state.files.push((file, PathBuf::from(OsStr::from_bytes(value))));
        } else if let Some(control) = Control::all().find(|control| control.key().as_bytes() == key) {
            let number = str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok());
            let number = number.filter(|number| !number.is_nan());
            let number = number.ok_or_else(|| format!("the state is damaged: {} is not a number", control.key()))?;
            state.values.push((control, number));
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use amp::Parameter;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let values = Values::default();
        values.set(Control::Bypass, 1.0);
        values.set(Control::Parameter(Parameter::Bass), 0.1);
        let model = Path::new(OsStr::from_bytes(b"/tones/\xff \n.nam"));
        let bytes = write(&values, |file| (file == FileProperty::Model).then_some(model));
        let state = read(&bytes).unwrap();
        assert_eq!(state.files, [(FileProperty::Model, model.to_owned())]);
        let again = Values::default();
        state.values.iter().for_each(|(control, value)| again.set(*control, *value));
        for control in Control::all() {
            assert_eq!(again.get(control).to_bits(), values.get(control).to_bits(), "{}", control.key());
        }
        assert!(bytes.len() < MAX_BYTES / 10);
    }

    #[test]
    fn a_damaged_state_is_refused_and_unknown_keys_are_left_out() {
        let bytes = write(&Values::default(), |_| None);
        for damaged in [&b""[..], b"\0", b"other\0", &bytes[..bytes.len() - 1], b"punctual amp 1\0bypass\0x\0"] {
            assert!(read(damaged).is_err(), "{damaged:?}");
        }
        assert_eq!(read(b"punctual amp 1\0of a later version\x001\0"), Ok(State::default()));
        // Every single byte can be wrong or the last one without a panic.
        for at in 0..bytes.len() {
            for value in [0, b'0', b'-', 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                let _ = (read(&wrong), read(&bytes[..at]));
            }
        }
    }
}
