//! The consoles of the kernel, as in `/proc/consoles`.

/// The numbers of `/dev/console`, which is any of them.
const CONSOLE: (u32, u32) = (5, 1);

/// True if the kernel writes its messages to a terminal. `consoles` is the text of `/proc/consoles`, `name` the name of the
/// terminal below `/dev`, and `device` its major and minor number if they are known.
#[must_use]
pub fn is_console(consoles: &str, name: &str, device: Option<(u32, u32)>) -> bool {
    let numbers = device.map(|(major, minor)| format!("{major}:{minor}"));
    device == Some(CONSOLE)
        || consoles.lines().map(str::split_whitespace).any(|mut words| {
            let is_named = words.next() == Some(name);
            is_named || numbers.is_some() && words.last() == numbers.as_deref()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_are_known_by_name_and_number() {
        let consoles = "tty0                 -WU (EC  p  )    4:7\nttyS0                -W- (E   p a)    4:64\nnetcon0 -W- (E p)\n";
        assert!(is_console(consoles, "ttyS0", None) && is_console(consoles, "serial/by-id/x", Some((4, 64))));
        assert!(!is_console(consoles, "ttyS1", Some((4, 65))) && !is_console(consoles, "ttyS", None));
        assert!(is_console("", "console", Some((5, 1))) && !is_console("", "ttyS0", Some((4, 64))));
    }
}
