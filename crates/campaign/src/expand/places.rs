//! CPUs in words, turned into those of a machine.

use std::collections::BTreeSet;

use machine::{CpuError, CpuList, Root, usable_cpus};

use sys::sched::Policy;

use crate::{
    file::{CpuWord, CpuWords, Mistake, Place, PlacedOn, Placement},
    probe::{self, Probe, best_cpu},
};

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

/// What words of a scenario refer to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scene {
    /// Every CPU that the placement measures.
    pub measured: CpuList,
    /// CPUs that all else is moved off.
    pub shield: Option<CpuList>,
}

/// Where one scenario measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// Its CPUs, as words know them.
    pub scene: Scene,
    /// The CPUs of the run: those that are measured, and that of a listener at the other end of a virtual cable.
    pub cpus: CpuList,
    /// The CPUs that several threads go onto, in turn; of a probe over the network those of all its threads.
    pub in_turn: Vec<u32>,
    /// Whether the placement has other spots as well, so that its CPUs name it.
    pub one_of_many: bool,
}

impl Spot {
    /// What the placement is called here: `shielded`, `CPU 2`, `base 0, servo 1`.
    pub fn name(&self, placement: &Placement, among_others: bool, probe: &Probe) -> String {
        if !self.one_of_many {
            return placement.name.clone();
        }
        let here = match (&placement.on, &self.in_turn[..]) {
            (PlacedOn::Pairs(_), cpus) => {
                let placed =
                    probe.definition().roles().into_iter().zip(cpus).map(|(role, cpu)| format!("{role} {cpu}"));
                placed.take(2).collect::<Vec<_>>().join(", ")
            }
            (_, [first, ..]) => CpuList::from_iter([*first]).in_words(),
            (_, []) => self.scene.measured.in_words(),
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

    /// The spots of a placement for a probe; at least one.
    pub fn of(&mut self, placement: &Placement, probe: &Probe) -> Vec<Spot> {
        let nothing = Scene::default();
        let set = |places: &mut Self, words| -> CpuList {
            let found = places.resolve(words, &nothing, &placement.name);
            found.unwrap_or_else(|| places.anywhere().collect())
        };
        let rule = probe.definition().placement();
        let spots: Vec<Vec<u32>> = match &placement.on {
            PlacedOn::Set(words) if rule.takes_best_cpu => {
                vec![best_cpu(&set(self, words), &self.cpus.isolated).into_iter().collect()]
            }
            PlacedOn::Set(words) => vec![set(self, words).iter().collect()],
            PlacedOn::Each(words) => set(self, words).iter().map(|cpu| vec![cpu]).collect(),
            PlacedOn::Pairs(words) => {
                let cpus: Vec<u32> = set(self, words).iter().collect();
                cpus.iter().flat_map(|&a| cpus.iter().map(move |&b| vec![a, b])).collect()
            }
            PlacedOn::ByThread(list) => {
                let one = |words: &CpuWords| self.one(words, &placement.name).or_else(|| self.anywhere().next());
                vec![list.iter().filter_map(one).collect()]
            }
        };
        let one_of_many = matches!(placement.on, PlacedOn::Each(_) | PlacedOn::Pairs(_));
        let spot = |named: Vec<u32>| {
            let measured: CpuList = named.iter().take(rule.measured).copied().collect();
            let around = Scene { measured, shield: None };
            let words = placement.shield.as_ref();
            let shield = words.and_then(|words| self.shield(words, &around, &placement.name));
            let in_turn = probe.clone().definition_mut().place(named, &self.machine(placement.policy));
            let cpus = in_turn.iter().take(rule.measured).copied().collect();
            Spot { scene: Scene { shield, ..around }, cpus, in_turn, one_of_many }
        };
        spots.into_iter().map(spot).collect()
    }

    /// The machine, for a probe that is placed with this policy.
    pub fn machine(&self, policy: Option<Policy>) -> probe::Places<'a> {
        probe::Places { usable: &self.cpus.usable, isolated: &self.cpus.isolated, policy }
    }

    /// The one CPU of a thread.
    fn one(&mut self, words: &CpuWords, part: &str) -> Option<u32> {
        let cpus = self.resolve(words, &Scene::default(), part)?;
        if cpus.len() > 1 {
            let text = format!("each thread needs one CPU, and these are {}: write last or a number", cpus.in_words());
            self.wrong(words.place, text);
        }
        cpus.first()
    }

    /// The shielded CPUs; `None` for no shield.
    fn shield(&mut self, words: &CpuWords, scene: &Scene, part: &str) -> Option<CpuList> {
        let usable = self.cpus.usable.clone();
        self.choose(words, part, |cpus, word| match cpus.find(word, scene) {
            Ok(shield) if usable.difference(&shield).is_empty() => Err(format!(
                "shielding {} leaves no CPU for everything else: shield fewer, or write `{word} or none`",
                shield.in_words()
            )),
            found => found,
        })
        .filter(|shield| !shield.is_empty())
    }

    /// The CPUs that words mean in a scenario; `None` where there are none such.
    pub fn resolve(&mut self, words: &CpuWords, scene: &Scene, part: &str) -> Option<CpuList> {
        self.choose(words, part, |cpus, word| cpus.find(word, scene))
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
        if let Err(text) = self.cpus.find(&CpuWord::List(cpus.clone()), &Scene::default()) {
            self.wrong(place, text);
        }
    }
}

impl Cpus {
    /// The CPUs that a word means in a scenario.
    fn find(&self, word: &CpuWord, scene: &Scene) -> Result<CpuList, String> {
        let Self { usable, isolated } = self;
        let measured = &scene.measured;
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
            CpuWord::First(of) => return self.find(of, scene).map(|cpus| cpus.first().into_iter().collect()),
            CpuWord::Last(of) => return self.find(of, scene).map(|cpus| cpus.last().into_iter().collect()),
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
            CpuWord::Unshielded => {
                let outside = scene.shield.as_ref().map_or_else(|| usable.clone(), |shield| usable.difference(shield));
                (outside, "every CPU here is shielded: shield fewer")
            }
        };
        if found.is_empty() { Err(none.to_owned()) } else { Ok(found) }
    }
}
