//! `punctual run`: scenarios from one file, interrupted, killed and resumed.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use record::{Campaign, State, file};
use stalls::{Stall, repeat_if_stalled};

use super::harness::{Run, Scratch, Start, Started, signal, wait_until};

/// Two loads on two placements: four scenarios of a second each. Not on the last CPU, which other tests take offline.
const TABLE: &str = r#"
    name = "table"
    title = "Two loads, two priorities"

    [probe]
    kind = "timer"
    period = "1ms"
    duration = "1s"

    [[load]]
    name = "idle"
    [[load]]
    name = "busy"
    run = ["cpu"]

    [[placement]]
    name = "nice"
    cpus = "first"
    policy = "other"
    [[placement]]
    name = "plain"
    cpus = "first"
    policy = "other"
"#;

struct Bench {
    scratch: Scratch,
}

impl Bench {
    fn new(table: &str) -> Self {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("table.toml"), table).unwrap();
        Self { scratch }
    }

    fn run(&self, more: &str) -> Run {
        self.scratch.run(&format!("run table.toml --full --dir out {more}"))
    }

    fn start(&self) -> Started {
        let mut command = self.scratch.punctual("run table.toml --full --dir out");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).start()
    }

    fn document(&self) -> PathBuf {
        self.scratch.path().join("out/campaign.json")
    }

    fn campaign(&self) -> Campaign {
        file::read_campaign(&self.document()).expect("a campaign's document")
    }

    fn done(&self) -> usize {
        file::read_campaign(&self.document())
            .map_or(0, |campaign| campaign.scenarios.iter().filter(|entry| entry.result.is_some()).count())
    }
}

#[test]
fn a_campaign_runs_and_is_shown_again() {
    let bench = Bench::new(TABLE);
    let run = bench.run("");
    // One repeat decides nothing.
    run.expect_status(3);
    for word in ["idle", "busy", "nice", "plain", "Undecided", "worst", "4 of 4"] {
        assert!(run.stdout().contains(word), "{word}: {}", run.stdout());
    }
    let campaign = bench.campaign();
    assert_eq!((campaign.state, campaign.scenarios.len()), (State::Complete, 4));
    for entry in &campaign.scenarios {
        let path = bench.scratch.path().join("out").join(&entry.record);
        let record = file::read(&path).unwrap();
        let result = entry.result.as_ref().unwrap();
        assert_eq!(record.series[0].max_ns, result.roles[0].max_ns, "{}", entry.name);
        assert_eq!(record.phases[0].asked_loads.is_empty(), entry.load == "idle");
        assert!(path.with_extension("html").exists());
    }
    let shown = bench.scratch.run("show --full out/campaign.json");
    assert_eq!(shown.expect_status(3).stdout(), run.stdout());
    let answer = bench.scratch.run("show out/campaign.json").stdout();
    let ran = format!("ran      {0} of {0} scenarios", campaign.scenarios.len());
    assert!(answer.lines().count() <= 20 && answer.contains(&ran), "{answer}");
    assert!(answer.ends_with("more     punctual show --full out/campaign.json\n"), "{answer}");
    for arguments in ["show out", "show LAST", "show"] {
        assert_eq!(bench.scratch.run(arguments).stdout(), answer, "{arguments}");
    }
    let refused = bench.scratch.run("measure timer --against out/campaign.json").stderr();
    assert!(refused.contains("it is a campaign: print it with `punctual show`"), "{refused}");
    let refused = bench.scratch.run("measure timer --against LAST").stderr();
    assert!(refused.contains("out/campaign.json is a campaign: name the record of one of its scenarios"), "{refused}");
    // More missed deadlines are worse than a larger time, and invalid runs come last.
    let badness = |entry: &record::ScenarioEntry| {
        let result = entry.result.as_ref().unwrap();
        let role = &result.roles[0];
        let missed = role.absent() as f64 / (role.samples + role.absent()) as f64;
        (result.valid, missed, role.max_ns)
    };
    let worst = campaign.scenarios.iter().max_by(|a, b| badness(a).partial_cmp(&badness(b)).unwrap()).unwrap();
    for arguments in ["blame out", "blame", "blame out/campaign.json"] {
        let named = bench.scratch.run(arguments).stderr();
        assert!(named.contains(&format!("out/{}: the worst scenario", worst.record)), "{arguments}: {named}");
    }
    let headline = bench.scratch.run("show out/campaign.json --quiet").stdout();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&answer).starts_with(&words(&headline)) && headline.lines().count() == 1, "{headline}");
    let json: Campaign = serde_json::from_str(&bench.scratch.run("show out/campaign.json --json").stdout()).unwrap();
    assert_eq!(json, campaign);
    an_edited_document_changes_no_result(&bench, &campaign);
    bench.scratch.run("show out/campaign.json --export c.xml --export c.md").expect_status(3);
    let exported = |name: &str| fs::read_to_string(bench.scratch.path().join(name)).unwrap();
    assert_eq!(exported("c.xml").matches("<testcase ").count(), campaign.scenarios.len());
    let markdown = exported("c.md");
    let counts = "\n**4 not judged** in the campaign Two loads, two priorities\n";
    assert!(markdown.starts_with("Undecided, because ") && markdown.contains(counts), "{markdown}");
    let refused = bench.scratch.run("show out/campaign.json --export c.prom");
    assert!(refused.expect_status(64).stderr().contains("must end in .html, .md or .xml"), "{}", refused.stderr());
    let html = fs::read_to_string(bench.scratch.path().join("out/campaign.html")).unwrap();
    assert!(
        html.contains("Two loads, two priorities")
            && html.contains(&campaign.scenarios[3].record.replace("json", "html"))
    );
}

/// The results of a campaign come from its records. One that has lost its record does not pass.
fn an_edited_document_changes_no_result(bench: &Bench, campaign: &Campaign) {
    let mut edited = campaign.clone();
    for entry in &mut edited.scenarios {
        entry.record.clone_from(&campaign.scenarios[0].record);
        let result = entry.result.as_mut().unwrap();
        result.outcome = Some(record::Outcome::Pass);
        result.culprit = Some("nobody".to_owned());
        result.roles.iter_mut().for_each(|role| role.max_ns = Some(1));
    }
    let write = |campaign: &Campaign| fs::write(bench.document(), file::campaign_to_json(campaign)).unwrap();
    let shown = |status| -> Campaign {
        let run = bench.scratch.run("show out/campaign.json --json");
        serde_json::from_str(&run.expect_status(status).stdout()).unwrap()
    };
    write(&edited);
    assert_eq!(&shown(3), campaign);
    let record = bench.scratch.path().join("out").join(&campaign.scenarios[1].record);
    let bytes = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let result = shown(3).scenarios[1].result.clone().unwrap();
    assert_eq!(result.outcome, Some(record::Outcome::Inconclusive));
    let problem = result.problem.unwrap();
    assert!(problem.contains("the stored result cannot be checked"), "{problem}");
    // The load of this one is not in the plan of the other.
    let other = bench.scratch.path().join("out").join(&campaign.scenarios[2].record);
    fs::copy(other, &record).unwrap();
    let problem = shown(3).scenarios[1].result.clone().unwrap().problem.unwrap();
    assert!(problem.contains("is the record of another scenario"), "{problem}");
    fs::write(&record, bytes).unwrap();
    // Scenarios that were left out, and a result that was.
    let changes: [fn(&mut Campaign); 2] =
        [|campaign| campaign.scenarios.clear(), |campaign| drop(campaign.scenarios.pop())];
    for change in changes {
        let mut edited = campaign.clone();
        change(&mut edited);
        write(&edited);
        assert_eq!(shown(3).state, State::Interrupted);
        bench.scratch.run("show out/campaign.json").expect_status(3);
    }
    let mut edited = campaign.clone();
    edited.scenarios[1].result = None;
    write(&edited);
    let [found, expected] = [&shown(3), campaign].map(|of| of.scenarios[1].result.clone().unwrap().roles);
    assert_eq!(found, expected);
    write(campaign);
}

#[test]
fn two_campaigns_do_not_share_a_folder() {
    let bench = Bench::new(TABLE);
    let mut child = bench.start();
    wait_until("the campaign has begun", || bench.document().exists());
    let second = bench.run("--resume");
    let text = second.expect_status(1).stderr();
    signal(&child, "INT");
    child.wait().unwrap();
    assert!(text.contains("another punctual runs a campaign in out"), "{text}");
}

#[test]
fn an_interrupted_or_killed_campaign_is_resumed() {
    for name in ["INT", "KILL"] {
        // The signal must come while the third or fourth scenario runs, for a second each.
        repeat_if_stalled(Stall::Ordinary(Duration::from_millis(200)), || interrupt_and_resume(name));
    }
}

fn interrupt_and_resume(name: &str) {
    let bench = Bench::new(TABLE);
    let mut child = bench.start();
    wait_until("two scenarios have run", || bench.done() >= 2);
    signal(&child, name);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), (name == "INT").then_some(3), "{name}");
    let before = bench.campaign();
    assert_eq!(before.state, if name == "INT" { State::Interrupted } else { State::Partial });
    let resumed = bench.run("--resume");
    resumed.expect_status(3);
    let after = bench.campaign();
    assert_eq!((after.state, &after.started_at), (State::Complete, &before.started_at));
    assert_eq!(after.scenarios[..2], before.scenarios[..2], "finished scenarios are kept");
    bench.run("--resume").expect_status(3);
    assert_eq!(bench.campaign(), after, "no scenario is left");
}

#[test]
fn each_scenario_is_compared_with_published_figures() {
    let bench = Bench::new(&TABLE.replace("1s", "200ms"));
    bench.run("--against nonesuch").expect_status(64);
    assert!(!bench.document().exists(), "a wrong name is refused before the campaign starts");
    let run = bench.run("--against vim3l-evl");
    run.expect_status(3);
    assert!(run.stdout().contains("Compared with vim3l-evl") && run.stdout().contains("8.58 us"), "{}", run.stdout());
    let campaign = bench.campaign();
    let idle = &campaign.scenarios[0].result.as_ref().unwrap().roles[0];
    let [comparison] = &idle.beside[..] else { panic!("{idle:?}") };
    assert_eq!((comparison.phase.as_str(), comparison.max_ns), ("idle", Some(8_575)));
    assert!((comparison.ratio.unwrap() - idle.max_ns.unwrap() as f64 / 8_575.0).abs() < 1e-9);
    let shown = bench.scratch.run("show out/campaign.json --against rpi3-rt");
    assert!(shown.expect_status(3).stdout().contains("Compared with rpi3-rt"), "{}", shown.stdout());
}

#[test]
fn only_the_same_plan_is_resumed() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(200)), resume_another_plan);
}

fn resume_another_plan() {
    let bench = Bench::new(TABLE);
    let nothing = bench.run("--resume");
    nothing.expect_status(1);
    assert!(nothing.stderr().contains("no campaign of this plan"), "{}", nothing.stderr());
    let mut child = bench.start();
    wait_until("one scenario has run", || bench.done() >= 1);
    signal(&child, "INT");
    child.wait().unwrap();
    fs::write(bench.scratch.path().join("table.toml"), TABLE.replace("1ms", "2ms")).unwrap();
    let other = bench.run("--resume");
    other.expect_status(1);
    assert!(other.stderr().contains("another plan"), "{}", other.stderr());
    let again = bench.run("");
    again.expect_status(1);
    assert!(again.stderr().contains("--resume"), "a campaign is never overwritten: {}", again.stderr());
}

#[test]
fn a_scenario_that_cannot_run_is_reported_and_the_others_run() {
    let bench = Bench::new(&TABLE.replace("\"cpu\"", "\"net:if=nonesuch\""));
    let run = bench.run("");
    run.expect_status(1);
    let campaign = bench.campaign();
    let failed: Vec<bool> = campaign.scenarios.iter().map(|entry| entry.error.is_some()).collect();
    assert_eq!(failed, [false, false, true, true], "{campaign:?}");
    assert!(run.stdout().contains("failed") && run.stdout().contains("nonesuch"), "{}", run.stdout());
}
