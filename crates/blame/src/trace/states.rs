//! Decodes `prev_state` of `sched_switch`.

use crate::event::PrevState;

/// The bits of `prev_state`, which differ between kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateBits {
    sleeping: i64,
    uninterruptible: i64,
    stopped: i64,
    /// The thread was preempted, regardless of the other bits.
    preempted: i64,
}

impl StateBits {
    /// Parses the bits from the print format: `... { 0x0001, "S" }, { 0x0002, "D" } ...`.
    pub(super) fn parse(print: &str) -> Self {
        let mut bits = Self { sleeping: 0, uninterruptible: 0, stopped: 0, preempted: 0 };
        let list = print.split_once("__print_flags(REC->prev_state").map_or("", |(_, list)| list);
        for pair in list.split('{').skip(1) {
            let Some((number, letter)) = pair.split_once(',') else { continue };
            let Some(bit) = number_of(number.trim()).filter(|bit| (1..1 << 30).contains(bit)) else { continue };
            match letter.split('"').nth(1) {
                // I is the sleep of a kernel thread that does not count as load.
                Some("S" | "I") => bits.sleeping |= bit,
                Some("D") => bits.uninterruptible |= bit,
                Some("T" | "t") => bits.stopped |= bit,
                _ => {}
            }
            // The bit for preemption is above all bits that have a letter.
            bits.preempted = bits.preempted.max(bit << 1);
        }
        if bits.sleeping == 0 || bits.uninterruptible == 0 { Self::LINUX_4_14 } else { bits }
    }

    /// The bits of Linux 4.14 and newer (include/linux/sched.h: TASK_REPORT and the definitions after it).
    const LINUX_4_14: Self = Self { sleeping: 0x81, uninterruptible: 0x02, stopped: 0x0c, preempted: 0x100 };

    #[inline]
    pub(super) fn prev_state(self, state: i64) -> PrevState {
        let shown = state & (self.preempted - 1);
        if state & self.preempted != 0 || shown == 0 {
            PrevState::Preempted
        } else if shown & self.uninterruptible != 0 {
            PrevState::Uninterruptible
        } else if shown & self.stopped != 0 {
            PrevState::Stopped
        } else if shown & self.sleeping != 0 {
            PrevState::Sleeping
        } else {
            PrevState::Other
        }
    }
}

/// Parses a C integer.
fn number_of(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of `__print_flags` as in the kernel's `format` file, shortened to `(mask)` before the list.
    fn print(flags: &[(&str, &str)]) -> String {
        let list: Vec<String> = flags.iter().map(|(bit, letter)| format!("{{ {bit}, \"{letter}\" }}")).collect();
        format!(
            "\"prev_state=%s\", (mask) ? __print_flags(REC->prev_state & (mask), \"|\", {}) : \"R\"",
            list.join(", ")
        )
    }

    #[test]
    fn parses_the_bits_of_current_kernels() {
        let now = print(&[
            ("0x00000001", "S"),
            ("0x00000002", "D"),
            ("0x00000004", "T"),
            ("0x00000008", "t"),
            ("0x00000010", "X"),
            ("0x00000020", "Z"),
            ("0x00000040", "P"),
            ("0x00000080", "I"),
        ]);
        assert_eq!(StateBits::parse(&now), StateBits::LINUX_4_14);
        let bits = StateBits::parse(&now);
        for (state, prev_state) in [
            (0, PrevState::Preempted),
            (0x100, PrevState::Preempted),
            (0x101, PrevState::Preempted),
            (1, PrevState::Sleeping),
            (0x80, PrevState::Sleeping),
            (2, PrevState::Uninterruptible),
            (4, PrevState::Stopped),
            (8, PrevState::Stopped),
            (0x10, PrevState::Other),
            (0x20, PrevState::Other),
            (0x40, PrevState::Other),
        ] {
            assert_eq!(bits.prev_state(state), prev_state, "{state:#x}");
        }
    }

    #[test]
    fn parses_the_bits_of_older_kernels() {
        // Linux 4.9: 2048 means preempted.
        let letters = ["S", "D", "T", "t", "Z", "X", "x", "K", "W", "P", "N"];
        let bits: Vec<String> = (0..letters.len()).map(|bit| (1 << bit).to_string()).collect();
        let flags: Vec<(&str, &str)> = bits.iter().map(String::as_str).zip(letters).collect();
        let bits = StateBits::parse(&print(&flags));
        assert_eq!(bits.prev_state(2048), PrevState::Preempted);
        assert_eq!(bits.prev_state(2048 | 1), PrevState::Preempted);
        assert_eq!(bits.prev_state(0x100), PrevState::Other, "waking, not preempted");
        assert_eq!(bits.prev_state(0x82), PrevState::Uninterruptible);
    }

    #[test]
    fn uses_default_bits_without_a_list() {
        for print in ["", "nonsense", "__print_flags(REC->prev_state, { x, \"S\" }, { 99999999999, \"D\" })"] {
            assert_eq!(StateBits::parse(print), StateBits::LINUX_4_14, "{print}");
        }
    }
}
