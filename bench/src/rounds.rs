//! Two programs in turn, so that whatever the machine does besides falls on both alike.

use anyhow::Result;

/// What both sides did in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair<A, B> {
    /// By punctual.
    pub ours: A,
    /// By cyclictest.
    pub theirs: B,
}

/// Runs both sides `rounds` times. The one that goes first changes from round to round.
pub fn alternate<A, B>(
    rounds: usize,
    mut ours: impl FnMut() -> Result<A>,
    mut theirs: impl FnMut() -> Result<B>,
) -> Result<Vec<Pair<A, B>>> {
    let round = |index| {
        if index % 2 == 0 {
            let ours = ours()?;
            Ok(Pair { ours, theirs: theirs()? })
        } else {
            let theirs = theirs()?;
            Ok(Pair { ours: ours()?, theirs })
        }
    };
    (0..rounds).map(round).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_goes_first_in_turn() {
        let order = RefCell::new(String::new());
        let say = |what| {
            order.borrow_mut().push(what);
            Ok(what)
        };
        let pairs = alternate(3, || say('p'), || say('c')).unwrap();
        assert_eq!(*order.borrow(), "pccppc");
        assert_eq!(pairs, [Pair { ours: 'p', theirs: 'c' }; 3]);
    }
}
