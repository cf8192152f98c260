//! The campaigns that ship with punctual: the files of `campaigns/`, in the binary.

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../campaigns/", $name, ".toml")))),*]
    };
}

/// Name and text of each file.
pub const FILES: [(&str, &str); 5] =
    files!("avb-cyclic" "cnc-matrix" "isolated-or-ordinary" "shielded-core" "vim3l-ladder");
