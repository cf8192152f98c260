//! The colour of each cause, in the ledger and in time lines.

use record::{Blame, Cause};

use crate::blame::includes;

/// The number of accounts with their own colour; the others share the last one.
const COLOURS: usize = 6;

/// The causes of the ledger, in the order of their colours.
pub struct Colours<'a>(Vec<&'a Cause>);

impl<'a> Colours<'a> {
    /// The colours for a ledger.
    pub fn of(blame: &'a Blame) -> Self {
        Self(blame.ledger.iter().map(|account| &account.cause).collect())
    }

    /// The index of the account that a cause belongs to.
    pub fn position(&self, cause: &Cause) -> Option<usize> {
        self.0.iter().position(|known| includes(known, cause))
    }

    /// CSS class of a cause.
    pub fn class(&self, cause: &Cause) -> String {
        let unexplained = cause.kind == record::CauseKind::Unexplained;
        format!("h{}", self.position(cause).filter(|_| !unexplained).unwrap_or(COLOURS).min(COLOURS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::CauseKind::{Interrupt, Softirq, Thread};

    #[test]
    fn assigns_spikes_to_accounts() {
        let cause = Cause::new;
        let ledger =
            [cause(Thread, "kworker"), cause(Softirq, ""), cause(Thread, "irq/9-eth0"), cause(Interrupt, "eth")];
        let colours = Colours(ledger.iter().collect());
        for (cause, expected) in [
            (cause(Thread, "kworker/1:2-events"), Some(0)),
            (cause(Thread, "kworkers"), None),
            (cause(Softirq, ""), Some(1)),
            (cause(Softirq, "/NET"), None),
            (cause(Thread, "irq/9-eth0"), Some(2)),
            (cause(Interrupt, "eth0"), None),
        ] {
            assert_eq!(colours.position(&cause), expected, "{cause:?}");
        }
    }
}
