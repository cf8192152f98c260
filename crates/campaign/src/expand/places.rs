//! CPUs in words, turned into those of a machine.

use std::collections::BTreeSet;

use machine::{CpuError, CpuList, Root, usable_cpus};

use crate::file::{CpuWord, CpuWords, Mistake, Place, PlacedOn, Placement, ProbeKind};

/// The CPUs of a machine, as far as a campaign needs to know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// Those that are online and that this process may use; at least one.
    pub usable: CpuList,
    /// Those that the kernel isolates.
    pub isolated: CpuList,
}

impl Cpus {
    /// Those of the machine below `root`.
    ///
    /// # Errors
    /// When the kernel does not tell which CPUs are online.
    pub fn of(root: &Root) -> Result<Self, CpuError> {
        let isolated = machine::facts(root).cpus_isolated.and_then(|list| list.parse().ok());
        Ok(Self { usable: usable_cpus(root, None)?, isolated: isolated.unwrap_or_default() })
    }
}

/// Where one scenario measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// Every CPU that is measured.
    pub measured: CpuList,
    /// The CPUs that several threads go onto, in turn.
    pub in_turn: Vec<u32>,
    /// CPUs that all else is moved off.
    pub shield: Option<CpuList>,
    /// Whether the placement has other spots as well, so that its CPUs name it.
    one_of_many: bool,
}

impl Spot {
    /// What the placement is called here: `shielded`, `CPU 2`, `base 0, servo 1`.
    pub fn name(&self, placement: &Placement, among_others: bool, probe: &ProbeKind) -> String {
        if !self.one_of_many {
            return placement.name.clone();
        }
        let of_pair = |threads: &[crate::file::Thread]| {
            let placed = threads.iter().zip(&self.in_turn).map(|(thread, cpu)| format!("{} {cpu}", thread.role));
            placed.collect::<Vec<_>>().join(", ")
        };
        let here = match (probe, &placement.on) {
            (ProbeKind::Threads(threads), PlacedOn::Pairs(_)) => of_pair(threads),
            _ => self.measured.in_words(),
        };
        if among_others { format!("{}, {here}", placement.name) } else { here }
    }
}

/// Turns words into CPUs, and gathers what does not fit and what stood in.
pub(super) struct Places<'a> {
    cpus: &'a Cpus,
    notes: BTreeSet<String>,
    mistakes: BTreeSet<Mistake>,
}

impl<'a> Places<'a> {
    pub fn new(cpus: &'a Cpus) -> Self {
        Self { cpus, notes: BTreeSet::new(), mistakes: BTreeSet::new() }
    }

    pub fn wrong(&mut self, place: Place, text: String) {
        self.mistakes.insert(Mistake { place, text });
    }

    /// What stood in, and what does not fit, in the order of lines.
    pub fn finish(self) -> (Vec<String>, Vec<Mistake>) {
        (self.notes.into_iter().collect(), self.mistakes.into_iter().collect())
    }

    /// Some CPU in place of those that do not exist, so that one mistake hides no other.
    fn anywhere(&self) -> impl Iterator<Item = u32> + use<> {
        self.cpus.usable.first().into_iter()
    }

    /// The spots of a placement; at least one.
    pub fn of(&mut self, placement: &Placement) -> Vec<Spot> {
        let nothing = CpuList::new();
        let spot = |in_turn: Vec<u32>, one_of_many| Spot {
            measured: in_turn.iter().copied().collect(),
            in_turn,
            shield: None,
            one_of_many,
        };
        let set = |places: &mut Self, words| -> Vec<u32> {
            let found = places.resolve(words, &nothing, &placement.name);
            found.map_or_else(|| places.anywhere().collect(), |found| found.iter().collect())
        };
        let mut spots: Vec<Spot> = match &placement.on {
            PlacedOn::Set(words) => vec![spot(set(self, words), false)],
            PlacedOn::Each(words) => set(self, words).into_iter().map(|cpu| spot(vec![cpu], true)).collect(),
            PlacedOn::Pairs(words) => {
                let cpus = set(self, words);
                cpus.iter()
                    .flat_map(|&a| cpus.iter().map(move |&b| (a, b)))
                    .map(|(a, b)| spot(vec![a, b], true))
                    .collect()
            }
            PlacedOn::ByThread(list) => {
                let one = |words: &CpuWords| self.one(words, &placement.name).or_else(|| self.anywhere().next());
                vec![spot(list.iter().filter_map(one).collect(), false)]
            }
        };
        for spot in &mut spots {
            spot.shield =
                placement.shield.as_ref().and_then(|words| self.shield(words, &spot.measured, &placement.name));
        }
        spots
    }

    /// The one CPU of a thread.
    fn one(&mut self, words: &CpuWords, part: &str) -> Option<u32> {
        let cpus = self.resolve(words, &CpuList::new(), part)?;
        if cpus.len() > 1 {
            let text = format!("each thread needs one CPU, and these are {}: write last or a number", cpus.in_words());
            self.wrong(words.place, text);
        }
        cpus.first()
    }

    /// The shielded CPUs; `None` for no shield.
    fn shield(&mut self, words: &CpuWords, measured: &CpuList, part: &str) -> Option<CpuList> {
        let usable = self.cpus.usable.clone();
        self.choose(words, part, |cpus, word| match cpus.find(word, measured) {
            Ok(shield) if usable.difference(&shield).is_empty() => Err(format!(
                "shielding {} leaves no CPU for everything else: shield fewer, or write `{word} or none`",
                shield.in_words()
            )),
            found => found,
        })
        .filter(|shield| !shield.is_empty())
    }

    /// The CPUs that words mean beside these measured ones; `None` where there are none such.
    pub fn resolve(&mut self, words: &CpuWords, measured: &CpuList, part: &str) -> Option<CpuList> {
        self.choose(words, part, |cpus, word| cpus.find(word, measured))
    }

    /// Takes the first word that fits, and notes what it stands in for; the first word's error where none does.
    fn choose(
        &mut self,
        words: &CpuWords,
        part: &str,
        find: impl Fn(&Cpus, &CpuWord) -> Result<CpuList, String>,
    ) -> Option<CpuList> {
        let mut first_error = None;
        for word in &words.any {
            match (find(self.cpus, word), &first_error) {
                (Ok(found), None) => return Some(found),
                (Ok(found), Some(_)) => {
                    let wished = &words.any[0];
                    self.notes.insert(format!(
                        "{part}: `{word}` ({}) stands in for `{wished}` on this machine",
                        found.in_words()
                    ));
                    return Some(found);
                }
                (Err(error), _) => _ = first_error.get_or_insert(error),
            }
        }
        self.wrong(words.place, first_error.unwrap_or_default());
        None
    }

    /// Whether CPUs given by number exist.
    pub fn check(&mut self, place: Place, cpus: &CpuList) {
        if let Err(text) = self.cpus.find(&CpuWord::List(cpus.clone()), &CpuList::new()) {
            self.wrong(place, text);
        }
    }
}

impl Cpus {
    /// The CPUs that a word means beside these measured ones.
    fn find(&self, word: &CpuWord, measured: &CpuList) -> Result<CpuList, String> {
        let Self { usable, isolated } = self;
        let (found, none): (CpuList, &str) = match word {
            CpuWord::None => return Ok(CpuList::new()),
            CpuWord::List(cpus) => {
                let (missing, there) = (cpus.difference(usable), usable.in_words());
                let text = format!(
                    "this machine lets us use {there}, and not {}: name those, or a word such as last",
                    missing.in_words()
                );
                return if missing.is_empty() { Ok(cpus.clone()) } else { Err(text) };
            }
            CpuWord::All => (usable.clone(), "no CPU may be used here: widen the cpuset of this control group"),
            CpuWord::First(of) => return self.find(of, measured).map(|cpus| cpus.first().into_iter().collect()),
            CpuWord::Last(of) => return self.find(of, measured).map(|cpus| cpus.last().into_iter().collect()),
            CpuWord::Isolated => {
                let last = usable.last().unwrap_or(0);
                let text = format!(
                    "the kernel isolates no CPU here: boot with `isolcpus={last}`, or write `isolated or last`"
                );
                return Some(usable.intersection(isolated)).filter(|found| !found.is_empty()).ok_or(text);
            }
            CpuWord::Ordinary => (usable.difference(isolated), "every CPU here is isolated: write `ordinary or first`"),
            CpuWord::Measured => (measured.clone(), "nothing is measured here"),
            CpuWord::Others => (
                usable.difference(measured),
                "every CPU here is measured, and none is left over: measure fewer, or write `others or all`",
            ),
        };
        if found.is_empty() { Err(none.to_owned()) } else { Ok(found) }
    }
}
