//! Alternates between two programs, so that disturbances by the machine affect both equally.

use anyhow::Result;

/// Results of both programs in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair<A, B> {
    /// Result of punctual.
    pub own: A,
    /// Result of the other program.
    pub peer: B,
}

/// Runs both programs `rounds` times. Which one goes first alternates.
pub fn alternate<A, B>(
    rounds: usize,
    mut own: impl FnMut() -> Result<A>,
    mut peer: impl FnMut() -> Result<B>,
) -> Result<Vec<Pair<A, B>>> {
    let round = |index| {
        if index % 2 == 0 {
            let own = own()?;
            Ok(Pair { own, peer: peer()? })
        } else {
            let peer = peer()?;
            Ok(Pair { own: own()?, peer })
        }
    };
    (0..rounds).map(round).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn alternates_which_program_goes_first() {
        let order = RefCell::new(String::new());
        let run = |what| {
            order.borrow_mut().push(what);
            Ok(what)
        };
        let pairs = alternate(3, || run('p'), || run('c')).unwrap();
        assert_eq!(*order.borrow(), "pccppc");
        assert_eq!(pairs, [Pair { own: 'p', peer: 'c' }; 3]);
    }
}
