//! The names of network interfaces.

/// The kernel's limit for a name without its NUL, bytes.
const MAX_LENGTH: usize = 15;

/// True if an interface can have this name. A valid name is also safe as part of a path.
pub(crate) fn is_valid(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control())
}
