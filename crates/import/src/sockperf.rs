//! The summary of sockperf (`src/client.cpp`, `client_statistics`): `ping-pong`, `under-load` and `playback`.

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, another_run, caveat,
    cells::{check_percentiles, to_ns},
};

/// The format.
pub struct Report;

/// The line that begins the figures of a server.
const SERVER: &str = "Printing statistics for Server No:";

impl Format for Report {
    fn name(&self) -> &'static str {
        "sockperf"
    }

    fn is_it(&self, text: &str) -> bool {
        text.contains("sockperf: ") && text.contains(SERVER)
    }

    fn ending(&self) -> Ending {
        Ending::Line
    }

    fn read(&self, text: &str, _: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported { tool: "sockperf".to_owned(), ..Imported::default() };
        let mut servers: Vec<Server> = Vec::new();
        let mut protocol = "";
        for (number, line) in (1..).zip(text.lines()) {
            if let Some((_, name)) = line.split_once(" # ").filter(|(before, _)| before.contains("PORT =")) {
                protocol = if name.trim() == "TCP" { "tcp" } else { "" };
            } else if let Some((_, version)) = line.split_once("== version #") {
                if !imported.version.is_empty() {
                    return Err(another_run(number));
                }
                imported.version = version.split(' ').next().unwrap_or_default().to_owned();
            } else if let Some((_, server)) = line.split_once(SERVER) {
                if servers.iter().any(|known| known.name == server.trim()) {
                    return Err(another_run(number));
                }
                servers.push(Server::new(server.trim(), protocol));
            } else if let Some(server) = servers.last_mut() {
                server.line(number, line)?;
            }
        }
        for server in servers {
            server.end(&mut imported)?;
        }
        imported.caveats.push(caveat("omission", OMISSION));
        Ok(imported)
    }
}

/// The caveat of each result.
const OMISSION: &str = "messages that were due while sockperf waited for an answer are not in the figures; it leaves out the first and \
                        last messages of the run";

struct Server {
    name: String,
    figures: Figures,
    /// 1 if the times are whole round trips, 2 if they are halves. `None` before the summary.
    trips: Option<f64>,
    /// Number of messages that are sent together, if more than one.
    burst: Option<String>,
    percentiles: Vec<(String, f64)>,
    /// us.
    min: Option<f64>,
    /// us.
    max: Option<f64>,
    /// us.
    mean: Option<f64>,
    lost: [u64; 3],
}

impl Server {
    fn new(name: &str, protocol: &str) -> Self {
        let figures = Figures {
            probe: "udp".to_owned(),
            phase: "sockperf".to_owned(),
            role: protocol.to_owned(),
            ..Figures::default()
        };
        Self {
            name: name.to_owned(),
            figures,
            trips: None,
            burst: None,
            percentiles: Vec::new(),
            min: None,
            max: None,
            mean: None,
            lost: [0; 3],
        }
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), Mistake> {
        let wrong = || Mistake::new(number, format!("{line:?} must have a number"));
        let time = |text: &str| text.trim().parse::<f64>().ok().filter(|us| us.is_finite()).ok_or_else(wrong);
        let between = |begin: &str, end: &str| {
            let (_, rest) = line.split_once(begin)?;
            Some(rest.split(end).next().unwrap_or_default().trim())
        };
        if let Some(seconds) = between("[Valid Duration] RunTime=", "sec") {
            self.figures.duration_ns = to_ns(time(seconds)?, 1e9).and_then(|ns| u64::try_from(ns).ok());
        } else if let Some(summary) = between("Summary: ", "usec") {
            let (what, mean) = summary.rsplit_once(" is ").ok_or_else(wrong)?;
            // With --burst, `Latency of burst of 8 messages`.
            let (what, burst) = what.split_once(" of burst of ").unwrap_or((what, ""));
            self.trips = match what {
                "Latency" => Some(2.0),
                "Round trip" => Some(1.0),
                _ => return Err(wrong()),
            };
            self.mean = Some(time(mean)?);
            self.burst = burst.strip_suffix(" messages").map(str::to_owned);
        } else if let Some(samples) = between("Total", "observations") {
            self.figures.samples = Some(samples.parse().map_err(|_| wrong())?);
        } else if let Some(max) = between("<MAX> observation =", "\u{1b}") {
            self.max = Some(time(max)?);
        } else if let Some(min) = between("<MIN> observation =", "\u{1b}") {
            self.min = Some(time(min)?);
        } else if let Some((percent, us)) = between("---> percentile", "\u{1b}").and_then(|rest| rest.split_once('=')) {
            self.percentiles.push((percent.trim().to_owned(), time(us)?));
        } else if line.contains("# dropped messages =") {
            for (lost, name) in self.lost.iter_mut().zip(["dropped", "duplicated", "out-of-order"]) {
                let count = between(&format!("# {name} messages ="), ";").ok_or_else(wrong)?;
                *lost = count.parse().map_err(|_| wrong())?;
            }
        }
        Ok(())
    }

    fn end(mut self, imported: &mut Imported) -> Result<(), Mistake> {
        let cut = |name: &str| Mistake::new(0, format!("server {} has no {name}; the output is cut", self.name));
        let trips = self.trips.ok_or_else(|| cut("line `Summary:`"))?;
        let (min, max) = (self.min.ok_or_else(|| cut("`<MIN>`"))?, self.max.ok_or_else(|| cut("`<MAX>`"))?);
        let out_of_range = || Mistake::new(0, "a time is out of range");
        let ns = |us: f64| to_ns(us, trips * 1e3).ok_or_else(out_of_range);
        let of = |percent: &str| {
            self.percentiles.iter().find(|(name, _)| name == percent).map(|(_, us)| ns(*us)).transpose()
        };
        let ends = [(0.0, min), (100.0, max)];
        let percentiles = self.percentiles.iter().filter_map(|(name, us)| Some((name.parse().ok()?, *us)));
        check_percentiles(&format!("server {}", self.name), &percentiles.chain(ends).collect::<Vec<_>>())?;
        let (p50_ns, p99_ns) = (of("50.000")?, of("99.000")?);
        let others = self.percentiles.iter().filter(|(name, _)| !["50.000", "99.000"].contains(&name.as_str()));
        let others = others.map(|(name, us)| format!("{name} % {:.3} us", us * trips)).collect::<Vec<_>>();
        self.figures = Figures {
            min_ns: Some(ns(min)?),
            max_ns: Some(ns(max)?),
            mean_ns: self.mean.map(|us| us * trips * 1e3),
            p50_ns,
            p99_ns,
            note: if others.is_empty() { String::new() } else { format!("Other percentiles: {}.", others.join(", ")) },
            ..self.figures
        };
        if self.name != "0" {
            self.figures.phase = format!("sockperf-{}", self.name);
        }
        if trips > 1.0 {
            let text = "sockperf prints half of each round trip; the figures are the whole round trips, twice the printed times";
            imported.caveats.push(caveat("units", text));
        }
        if let Some(burst) = &self.burst {
            let text =
                format!("messages were sent in bursts of {burst}, so most of them wait for others of their burst");
            imported.caveats.push(caveat("burst", text));
        }
        let [dropped, duplicated, unordered] = self.lost;
        if self.lost.iter().any(|&lost| lost > 0) {
            let text = format!(
                "server {}: {dropped} dropped, {duplicated} duplicated and {unordered} out-of-order messages are in no figure",
                self.name
            );
            imported.caveats.push(caveat("overflow", text));
        }
        imported.figures.push(self.figures);
        Ok(())
    }
}
