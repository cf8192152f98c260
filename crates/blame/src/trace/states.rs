//! Why a thread gave up its CPU, from the bits in which `sched_switch` tells it.

use crate::event::Left;

/// What the bits of `prev_state` mean; they differ from kernel to kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct States {
    sleeping: i64,
    uninterruptible: i64,
    stopped: i64,
    /// Preempted, whatever the thread was about to do.
    preempted: i64,
}

impl States {
    /// Reads the bits from how the kernel prints them: `... { 0x0001, "S" }, { 0x0002, "D" } ...`.
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
            // It stands above all that have a letter.
            bits.preempted = bits.preempted.max(bit << 1);
        }
        if bits.sleeping == 0 || bits.uninterruptible == 0 { Self::LINUX_4_14 } else { bits }
    }

    /// Those of Linux 4.14 and newer (include/linux/sched.h: TASK_REPORT and what follows it).
    const LINUX_4_14: Self = Self { sleeping: 0x81, uninterruptible: 0x02, stopped: 0x0c, preempted: 0x100 };

    #[inline]
    pub(super) fn left(self, state: i64) -> Left {
        let shown = state & (self.preempted - 1);
        match () {
            () if state & self.preempted != 0 || shown == 0 => Left::Preempted,
            () if shown & self.uninterruptible != 0 => Left::Uninterruptible,
            () if shown & self.stopped != 0 => Left::Stopped,
            () if shown & self.sleeping != 0 => Left::Sleeping,
            () => Left::Other,
        }
    }
}

/// A number as C writes it.
fn number_of(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of `__print_flags` as the kernel's `format` file has it; `(mask)` stands for what is before it.
    fn print(flags: &[(&str, &str)]) -> String {
        let list: Vec<String> = flags.iter().map(|(bit, letter)| format!("{{ {bit}, \"{letter}\" }}")).collect();
        format!(
            "\"prev_state=%s\", (mask) ? __print_flags(REC->prev_state & (mask), \"|\", {}) : \"R\"",
            list.join(", ")
        )
    }

    #[test]
    fn bits_are_those_that_the_kernel_prints() {
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
        assert_eq!(States::parse(&now), States::LINUX_4_14);
        let states = States::parse(&now);
        for (state, left) in [
            (0, Left::Preempted),
            (0x100, Left::Preempted),
            (0x101, Left::Preempted),
            (1, Left::Sleeping),
            (0x80, Left::Sleeping),
            (2, Left::Uninterruptible),
            (4, Left::Stopped),
            (8, Left::Stopped),
            (0x10, Left::Other),
            (0x20, Left::Other),
            (0x40, Left::Other),
        ] {
            assert_eq!(states.left(state), left, "{state:#x}");
        }
    }

    #[test]
    fn older_kernels_put_other_states_and_preemption_elsewhere() {
        // Linux 4.9: 2048 stands for preemption.
        let letters = ["S", "D", "T", "t", "Z", "X", "x", "K", "W", "P", "N"];
        let bits: Vec<String> = (0..letters.len()).map(|bit| (1 << bit).to_string()).collect();
        let flags: Vec<(&str, &str)> = bits.iter().map(String::as_str).zip(letters).collect();
        let states = States::parse(&print(&flags));
        assert_eq!(states.left(2048), Left::Preempted);
        assert_eq!(states.left(2048 | 1), Left::Preempted);
        assert_eq!(states.left(0x100), Left::Other, "waking, not preempted");
        assert_eq!(states.left(0x82), Left::Uninterruptible);
    }

    #[test]
    fn without_a_list_the_bits_are_the_usual_ones() {
        for print in ["", "nonsense", "__print_flags(REC->prev_state, { x, \"S\" }, { 99999999999, \"D\" })"] {
            assert_eq!(States::parse(print), States::LINUX_4_14, "{print}");
        }
    }
}
