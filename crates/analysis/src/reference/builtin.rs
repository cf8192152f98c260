//! The references that ship with punctual: the files of `references/`, in the binary.

use std::sync::LazyLock;

use record::Record;

use super::parse::parse;

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../references/", $name, ".toml")))),*]
    };
}

/// Name and text of each file.
const FILES: [(&str, &str); 8] = files!(
    "athlon-rtai"
    "athlon-xenomai"
    "cortex-a53-rt"
    "cortex-a9-rt"
    "intel-avb"
    "rpi3-arch"
    "rpi3-rt"
    "vim3l-evl"
);

static REFERENCES: LazyLock<Vec<Record>> = LazyLock::new(|| {
    let read = |(name, text): (&str, &str)| {
        parse(name, text).unwrap_or_else(|(line, message)| panic!("references/{name}.toml, line {line}: {message}"))
    };
    FILES.map(read).into()
});

/// The built-in references, by name. Each is a record with [`Record::published`].
#[must_use]
pub fn references() -> &'static [Record] {
    &REFERENCES
}

#[cfg(test)]
mod tests;
