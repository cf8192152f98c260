//! Computes the results for one stream of a file. Reads the file twice: the first pass finds the streams and their
//! grids, the second pass measures the selected stream.

use std::io::{self, Read};

use analysis::format_ns;
use frames::{Link, wire_bytes};
use record::{Capture, CaptureClock, CapturedPeriod, Caveat, PeriodSource, Series, grouped};

use crate::{
    CaptureError, Filter, Interface, Reader,
    bursts::Bursts,
    caveats::{self, FileSummary, IncompleteFrames},
    convert::nearest,
    ends::{Clocks, End, Last},
    filter::{Key, Kind},
    fit::{self, Grid, STRETCHES_TO_FIT},
    heads::Heads,
    measure::{Measure, Nominal, Reference},
    period::Estimate,
    rates::{Change, ERRORS},
    schedule::coarse_slots,
    skips::SKIPPED_MOST,
    streams::{Known, Stream, Streams, class_of},
    track::{SAME_PERIOD, Tracked},
};

/// Maximum relative difference of two free clocks: 500 ppm, several times that of quartz oscillators.
const CLOCK_ERROR: f64 = 500e-6;

/// Fewer frames between the regular ones than this part of all are found one by one, unless they change the grid by the other
/// part.
const BETWEEN_ALL: f64 = 0.0125;
const BETWEEN_GRID: f64 = 1e-3;

/// Times that differ by a smaller part can look the same with three digits.
const SHOWN: f64 = 0.02;

/// Options of the analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Selects the frames.
    pub filter: Filter,
    /// Id of the AVTP stream that is analysed among the selected ones; `None` for the busiest one.
    pub analysed: Option<u64>,
    /// Number of the analysed stream in the list of the selected ones, from 1.
    pub number: Option<usize>,
    /// Interval between frames, ns; `None` uses that of the stream's class, or the median interval.
    pub period_ns: Option<u64>,
    /// Intervals of AVTP streams that have one of their own: stream id, and ns.
    pub stream_periods_ns: Vec<(u64, u64)>,
    /// Bandwidth reserved for the stream, bit/s; `None` means one frame of the maximum length per period.
    pub idle_slope_bps: Option<u64>,
    /// Speed of the link, bit/s.
    pub link_bps: u64,
    /// The clock of the capture, if it is tied to gPTP; it is that of presentation times.
    pub clock: Option<CaptureClock>,
}

impl Options {
    /// The interval between the frames of a stream as given, ns.
    pub(crate) fn period_of(&self, key: &Key) -> Option<u64> {
        let Kind::Avtp { stream_id, .. } = key.kind else { return self.period_ns };
        let own = self.stream_periods_ns.iter().find(|(id, _)| *id == stream_id);
        own.map(|(_, ns)| *ns).or(self.period_ns)
    }
}

/// The results of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The figures of the stream.
    pub capture: Capture,
    /// The lateness of its frames.
    pub series: Series,
    /// Limitations of these figures.
    pub caveats: Vec<Caveat>,
}

/// The index of the interface with this name, or with this number if none has the name.
///
/// # Errors
/// If the file cannot be read, is not a capture, or has no such interface.
pub fn find_interface(from: impl Read, name: &str) -> Result<u32, CaptureError> {
    let mut reader = Reader::new(from)?;
    let position =
        |reader: &Reader<_>| reader.interfaces().iter().position(|interface| interface.name.as_deref() == Some(name));
    let mut found = position(&reader);
    while found.is_none() && reader.next()?.is_some() {
        found = position(&reader);
    }
    let number = || name.parse().ok().filter(|&number| number < reader.interfaces().len());
    found.or_else(number).and_then(|index| u32::try_from(index).ok()).ok_or_else(|| {
        let named = |(number, interface): (usize, &Interface)| match &interface.name {
            Some(name) => format!("interface {number} ({name})"),
            None => format!("interface {number}"),
        };
        let found: Vec<_> = reader.interfaces().iter().enumerate().map(named).collect();
        let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        CaptureError::NoInterface { wanted: name.to_owned(), found }
    })
}

/// Analyses the file `name`, which `open` must open twice.
///
/// # Errors
/// If the file cannot be read, is not a capture, or has no such stream.
pub fn analyse<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    name: &str,
    options: &Options,
) -> Result<Analysis, CaptureError> {
    let mut opened = || open().map_err(|reason| CaptureError::Open { reason });
    let (mut file, mut streams) = first_pass(&mut opened()?, options, Known::default())?;
    let known = streams.known();
    if known != Known::default() {
        (file, streams) = first_pass(&mut opened()?, options, known.clone())?;
    }
    let order = streams.by_frames();
    let index = select(&file, &streams, &order, options)?;
    let mut tracked = streams.finish();
    let records = streams.to_records(&tracked);
    let stream = streams.all.swap_remove(index);
    let (key, truncated, without_stamp) = (stream.key, stream.truncated, stream.without_stamp);
    let last = Last { interface: key.interface, number: stream.last_number, at_ns: stream.last_ns };
    let mut clocks = Clocks::new(last, file.interfaces.len());
    let (reference, period, credit) = reference(&stream, tracked.swap_remove(index), records.len(), &file, options)?;
    let measure = Measure::new(reference);
    let measure = second_pass(&mut opened()?, &options.filter, &known, key, measure, &mut clocks)?;
    let batches = measure.comes_in_batches().then(caveats::batches);
    let wander = measure.wanders_within().then(caveats::wander_within);
    let (mut capture, series) = measure.finish(Capture {
        file: name.to_owned(),
        format: file.format.to_owned(),
        file_frames: file.frames,
        streams: order.iter().map(|&index| records[index].clone()).collect(),
        left_out: streams.left_out,
        stream: records[index].clone(),
        ended_before_ns: clocks.ended_before_ns(&file.ends, period.nominal_ns),
        period,
        dropped: file.interfaces.get(key.interface as usize).and_then(|interface| interface.dropped),
        ..Capture::default()
    });
    if without_stamp > 0 && capture.lost != Some(0) {
        // The ignored frames may be the lost ones.
        (capture.lost, capture.losses, capture.longest_loss) = (None, None, None);
    }
    // The second pass knows the grid.
    capture.stream.lost = capture.lost;
    if let Some(listed) = order.iter().position(|&listed| listed == index).and_then(|at| capture.streams.get_mut(at)) {
        listed.lost = capture.lost;
    }
    let incomplete = IncompleteFrames { truncated, without_stamp, foreign: streams.foreign };
    let caveats =
        caveats::all(&capture, &file, &incomplete).into_iter().chain(batches).chain(wander).chain(credit).collect();
    Ok(Analysis { capture, series, caveats })
}

/// The first pass. It is not generic, so that it is compiled in this crate, which is optimised more than those that call it.
fn first_pass(from: &mut dyn Read, options: &Options, known: Known) -> Result<(FileSummary, Streams), CaptureError> {
    let mut reader = Reader::new(from)?;
    let mut streams = Streams::new(known);
    let mut ends: Vec<Option<End>> = Vec::new();
    while let Some(packet) = reader.next()? {
        let interface = packet.interface as usize;
        if ends.len() <= interface {
            ends.resize(interface + 1, None);
        }
        if let Some(at_ns) = packet.at_ns {
            ends[interface].get_or_insert(End::new(packet.number, at_ns)).add(packet.number, at_ns);
        }
        streams.add(&packet, options);
    }
    let file = FileSummary {
        frames: reader.frames(),
        format: reader.format(),
        cut_at: reader.cut_at(),
        interfaces: reader.interfaces().to_vec(),
        ends,
    };
    Ok((file, streams))
}

/// The index of the stream to analyse.
fn select(file: &FileSummary, streams: &Streams, order: &[usize], options: &Options) -> Result<usize, CaptureError> {
    if file.frames == 0 {
        return Err(file.cut_at.map_or(CaptureError::Empty, |offset| CaptureError::Cut { offset }));
    }
    let other = file.interfaces.iter().find(|interface| Link::of(interface.link_type).is_none());
    if let (Some(other), true) = (other, streams.foreign == file.frames) {
        return Err(CaptureError::LinkType { found: other.link_type });
    }
    if let Some(number) = options.number.filter(|_| !order.is_empty()) {
        let index = number.checked_sub(1).and_then(|at| order.get(at)).copied();
        return index.ok_or(CaptureError::NoNumber { wanted: number, found: order.len() });
    }
    streams
        .to_analyse(options.analysed)
        .ok_or_else(|| CaptureError::NoStream { wanted: options.filter.to_string(), found: streams.describe_others() })
}

/// The reference for the stream, one of so many in the file, its period for the record, and why its credit is not checked.
fn reference(
    stream: &Stream,
    tracked: Option<Tracked>,
    streams: usize,
    file: &FileSummary,
    options: &Options,
) -> Result<(Reference, CapturedPeriod, Option<Caveat>), CaptureError> {
    let interface = file.interfaces.get(stream.key.interface as usize);
    let resolution_ns = interface.map_or(1, |interface| interface.resolution_ns);
    let wire_bits = wire_bytes(stream.longest as usize) as u64 * 8;
    if stream.first_ns.is_none() {
        return Err(CaptureError::NoStamps);
    }
    let class = class_of(stream.pcp);
    let (frames, asked_ns) = (stream.frames, options.period_of(&stream.key));
    let tracked = tracked.ok_or(CaptureError::TooFew { frames, streams })?;
    let known_ns = asked_ns.or(class.map(|(ns, _)| ns));
    let resolution_ns = resolution_ns.max(found_resolution_ns(&tracked));
    let (grid, skips) = fit(&tracked, known_ns, resolution_ns);
    let is_plain = skips == Skips::None && grid.batches_ns.is_none();
    let between = if is_plain { Between::of(&tracked, &grid, resolution_ns) } else { None };
    let fitted_ns = between.map_or(grid.group_ns(), |between| between.period_ns);
    let nominal = nominal(asked_ns, class, fitted_ns, &grid, resolution_ns);
    let other_period = match skips {
        Skips::None | Skips::Few => other_period(&tracked, &grid, nominal, between, resolution_ns),
        Skips::Many | Skips::Unknown => None,
    };
    let lateness_unknown = match skips {
        Skips::Unknown => coarse_stamps(&tracked, &grid, nominal, resolution_ns).or_else(|| Some(format!(
            "the frames are {} apart on average, and so unevenly that the talker probably skipped slots: which ones is not \
             known",
            format_ns(nearest(grid.group_ns()))
        ))),
        Skips::Many => coarse_stamps(&tracked, &grid, nominal, resolution_ns),
        Skips::None | Skips::Few => lateness_unknown(&tracked, &grid, nominal, resolution_ns, other_period.as_deref()),
    };
    let is_fitted = tracked.earliest.len() >= STRETCHES_TO_FIT && !tracked.has_equal_stamps();
    let ppm = (fitted_ns / nominal.ns as f64 - 1.0) * 1e6;
    // A ratio to a period estimated from the same frames, or to another than theirs, would be meaningless.
    let has_period = nominal.told_by != PeriodSource::Median
        && is_fitted
        && other_period.is_none()
        && ppm.abs() <= SAME_PERIOD * 1e6;
    let period = CapturedPeriod {
        nominal_ns: nominal.ns,
        told_by: nominal.told_by,
        stretches: tracked.earliest.len() as u64,
        fitted_ns,
        clock_ppm: has_period.then_some(ppm),
        clock_error_ppm: has_period.then_some(grid.slope_error * 1e6),
        wander_ns: grid.wander_ns,
        followed_ns: grid.wander.range_ns(),
    };
    let bits_per_period = u128::from(wire_bits) * u128::from(grid.frames());
    let reserved_bps = bits_per_period * 1_000_000_000 / u128::from(nominal.ns);
    let reserved_bps = u64::try_from(reserved_bps).unwrap_or(u64::MAX);
    let is_too_much = options.idle_slope_bps.is_none() && has_period && reserved_bps > options.link_bps;
    let credit = is_too_much.then(|| Caveat {
        kind: "credit".into(),
        text: format!(
            "credit is not checked: the longest frames in each period need {} bit/s, more than the link speed of {} bit/s; give \
             --link-speed or --idle-slope",
            grouped(reserved_bps),
            grouped(options.link_bps)
        ),
    });
    let shows_intervals = !tracked.has_equal_stamps() && resolution_ns <= nominal.ns / 4;
    let reference = Reference {
        nominal,
        // A period estimated from the frames, or one that they do not have, says nothing about what was reserved for them.
        idle_slope_bps: options
            .idle_slope_bps
            .or_else(|| (has_period && !is_too_much).then_some(reserved_bps))
            .filter(|_| shows_intervals),
        idle_slope_asked: options.idle_slope_bps.is_some(),
        is_class_b: class.is_some_and(|(_, told_by)| told_by == PeriodSource::ClassB),
        link_bps: options.link_bps,
        clock: options.clock,
        clock_ratio: period.clock_ppm.map_or(1.0, |_| nominal.ns as f64 / grid.group_ns()),
        resolution_ns,
        lateness_unknown,
        shows_intervals,
        changes_state: tracked.changes_state,
        is_irregular: tracked.estimate.is_none() && nominal.told_by == PeriodSource::Median,
        step_ns: tracked.step_ns,
        // Coarse stamps make bursts of any stream.
        bursts_differ: tracked.bursts.is_some_and(|bursts| bursts.frames.is_none())
            && coarse_slots(resolution_ns, grid.period_ns) == 0.0,
        counter: tracked.counter,
        shares_tag: stream.shares_tag,
        skips_many: skips == Skips::Many,
        may_wander_within: tracked.may_wander_within,
        grid,
    };
    Ok((reference, period, credit))
}

/// The slots that the talker skipped without a gap in its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skips {
    None,
    /// So few that the frames between them show the phase.
    Few,
    /// So many that all slots must have one phase.
    Many,
    /// There are probably many, which could not be distinguished.
    Unknown,
}

/// The grid of the stream, whose stated period is `known_ns`, if there is one.
fn fit(tracked: &Tracked, known_ns: Option<u64>, resolution_ns: u64) -> (Grid, Skips) {
    let fitted = |earliest: &[_]| Grid::fit(tracked.interval_ns, earliest, tracked.offsets_ns.clone(), resolution_ns);
    let difference = |grid: &Grid| known_ns.map_or(0.0, |ns| (grid.group_ns() / ns as f64 - 1.0).abs());
    let without_skips = tracked.skips.as_ref().map(|skips| (fitted(&skips.earliest), skips.are_many()));
    if let Some((grid, are_many)) = without_skips.filter(|(grid, _)| difference(grid) <= CLOCK_ERROR) {
        return (grid, if are_many { Skips::Many } else { Skips::Few });
    }
    let grid = fitted(&tracked.earliest);
    let differs = (CLOCK_ERROR..=SKIPPED_MOST).contains(&difference(&grid));
    let are_unknown = tracked.numbered && differs && fit::is_uneven(&tracked.earliest, grid.period_ns);
    (grid, if are_unknown { Skips::Unknown } else { Skips::None })
}

/// The timestamp resolution derived from the intervals, ns; 1 if unknown. If all intervals are multiples of the period, the
/// stamps do not show whether the stream is regular or the clock is coarse, so that is the resolution, too.
fn found_resolution_ns(tracked: &Tracked) -> u64 {
    if tracked.intervals < 16 || tracked.step_ns == 0 { 1 } else { tracked.step_ns }
}

/// The nominal period: the given one, that of the class if the stream has it, or the fitted one.
fn nominal(
    asked_ns: Option<u64>,
    class: Option<(u64, PeriodSource)>,
    fitted_ns: f64,
    grid: &Grid,
    resolution_ns: u64,
) -> Nominal {
    if let Some(ns) = asked_ns {
        return Nominal { ns, told_by: PeriodSource::Asked };
    }
    let error_ns = fitted_ns * (CLOCK_ERROR + grid.slope_error) + resolution_ns as f64 / grid.slots.max(1) as f64;
    match class.filter(|(ns, _)| (fitted_ns - *ns as f64).abs() <= error_ns) {
        Some((ns, told_by)) => Nominal { ns, told_by },
        None => Nominal { ns: nearest(fitted_ns).max(1).cast_unsigned(), told_by: PeriodSource::Median },
    }
}

/// Numbered frames between the regular ones, so that the slot of a frame does not follow from its number.
#[derive(Debug, Clone, Copy)]
struct Between {
    /// The period of the regular frames, ns.
    period_ns: f64,
    /// The part of all frames that are between them.
    part: f64,
}

impl Between {
    /// The frames between the regular ones, if the mean interval is shorter than the usual one by more than the error of a
    /// clock.
    fn of(tracked: &Tracked, grid: &Grid, resolution_ns: u64) -> Option<Self> {
        let (period_ns, error_ns) = tracked.rates.typical_ns().filter(|_| tracked.numbered && sends_singly(tracked))?;
        let error_ns = ERRORS * error_ns + resolution_ns as f64;
        let part = |interval_ns: f64| 1.0 - interval_ns / period_ns;
        let (of_grid, of_all) = (part(grid.period_ns), part(tracked.rates.mean_ns()?));
        let part = of_grid.max(of_all);
        let is_shown = (of_grid > BETWEEN_GRID || of_all > BETWEEN_ALL) && part * tracked.intervals as f64 >= 1.0;
        (is_shown && part * period_ns > error_ns).then_some(Self { period_ns, part })
    }
}

/// True if the frames are sent one by one at regular times, and not in groups, in bursts, or for new states.
fn sends_singly(tracked: &Tracked) -> bool {
    tracked.offsets_ns.is_empty() && tracked.bursts.is_none() && !tracked.changes_state
}

/// Why the stream has not the period that it is compared with; `None` if it has.
fn other_period(
    tracked: &Tracked,
    grid: &Grid,
    nominal: Nominal,
    between: Option<Between>,
    resolution_ns: u64,
) -> Option<String> {
    let in_words: fn(f64) -> String = |ns| format_ns(nearest(ns));
    let in_ns: fn(f64) -> String = |ns| format!("{} ns", grouped(nearest(ns).unsigned_abs()));
    let is_same = |ns: f64| (ns / nominal.ns as f64 - 1.0).abs() <= SAME_PERIOD;
    if let Some((ratio, at_ns)) = tracked.other_step.filter(|_| sends_singly(tracked)) {
        return Some(format!(
            "the numbers are {ratio} times as far apart from {} on, so the talker probably changed its period from {} to {}: \
             analyse both parts apart",
            format_ns(at_ns),
            in_words(grid.period_ns),
            in_words(grid.period_ns * ratio)
        ));
    }
    let change = tracked.rates.change(resolution_ns, tracked.numbered).filter(|_| sends_singly(tracked));
    // A talker that has its period in one part of the capture and a multiple in the other skips slots, unless it restarted.
    let is_multiple = |ns: f64| is_same(ns / (ns / nominal.ns as f64).round().max(1.0));
    let skips = |change: &Change| {
        let is_stated = nominal.told_by != PeriodSource::Median;
        !tracked.may_have_restarted && is_stated && is_multiple(change.before_ns) && is_multiple(change.after_ns)
    };
    if let Some(Change { frame, at_ns, before_ns, after_ns }) = change.filter(|change| !skips(change)) {
        let ratio = after_ns / before_ns;
        let in_words = if (ratio - 1.0).abs() < SHOWN { in_ns } else { in_words };
        return Some(format!(
            "the talker changed its period from {} to {} ({:+.1} %) near frame {}, after {}: analyse both parts apart, e.g. \
             editcap -r FILE PART 1-{frame}",
            in_words(before_ns),
            in_words(after_ns),
            (ratio - 1.0) * 100.0,
            grouped(frame),
            format_ns(at_ns)
        ));
    }
    let found = tracked.estimate.as_ref();
    // Frames without numbers may be missing.
    let is_found = found.is_none_or(|found| {
        is_same(found.interval_ns) || is_same(found.period_ns()) || !tracked.numbered && is_multiple(found.interval_ns)
    });
    let fitted_ns = between.map_or(grid.group_ns(), |between| between.period_ns);
    if nominal.told_by == PeriodSource::Asked && !(is_found && is_same(fitted_ns)) {
        let seen = in_words(between.map_or(found.map_or(fitted_ns, Estimate::period_ns), |between| between.period_ns));
        return Some(format!("the stream has a frame every {seen}, but --period is {}", in_words(nominal.ns as f64)));
    }
    between.map(|Between { period_ns, part }| {
        format!(
            "about {:.1} % of the frames are between those that come every {}, and have numbers, too: which frame belongs to \
             which slot is not known",
            part * 100.0,
            in_words(period_ns)
        )
    })
}

/// Why the lateness of the frames cannot be known; `None` if it can.
fn lateness_unknown(
    tracked: &Tracked,
    grid: &Grid,
    nominal: Nominal,
    resolution_ns: u64,
    other_period: Option<&str>,
) -> Option<String> {
    let time = |ns: u64| format_ns(ns.cast_signed());
    let fitted = time(nearest(grid.group_ns()).cast_unsigned());
    if let Some(reason) = coarse_stamps(tracked, grid, nominal, resolution_ns) {
        Some(reason)
    } else if let Some(batches_ns) = grid.batches_ns {
        let exact = |ns: f64| grouped(nearest(ns).unsigned_abs());
        Some(format!(
            "over short times a frame comes every {} ns, but over the capture every {} ns, because some come at once: probably a \
             card or a driver delivered them in batches, or the talker sends them so. To exclude the card of the capture, let it \
             not wait: sudo ethtool -C DEV rx-usecs 0 rx-frames 1",
            exact(batches_ns),
            exact(grid.period_ns)
        ))
    } else if tracked.intervals < 2 {
        Some("two frames show no grid".to_owned())
    } else if tracked.changes_state {
        Some("frames of a new state are repeated at growing intervals, so they have no regular slots".to_owned())
    } else if let Some(Bursts { frames, period_ns }) = tracked.bursts {
        let every = time(nearest(period_ns).cast_unsigned());
        let bursts = match frames {
            Some(frames) => format!("bursts of {frames}"),
            None => "bursts of different lengths".to_owned(),
        };
        Some(format!("the frames are sent in {bursts}, one every {every}: they have no regular slots"))
    } else if let Some(reason) = other_period {
        Some(reason.to_owned())
    } else if tracked.estimate.is_none() && nominal.told_by == PeriodSource::Median {
        Some("the frames are not regular, so the period is not known: give --period".to_owned())
    } else if !tracked.numbered && !tracked.offsets_ns.is_empty() {
        Some(format!(
            "frames without sequence numbers are sent in groups of {} every {fitted}: which frame belongs to which slot \
             is not known",
            grid.frames()
        ))
    } else if tracked.irregular {
        Some(
            "fewer than half of the frames came one period after the previous one: without sequence numbers, their slots \
             are not known"
                .to_owned(),
        )
    } else {
        None
    }
}

/// Why the timestamps are too coarse to show lateness; `None` if they are not.
fn coarse_stamps(tracked: &Tracked, grid: &Grid, nominal: Nominal, resolution_ns: u64) -> Option<String> {
    let time = |ns: u64| format_ns(ns.cast_signed());
    if tracked.has_equal_stamps() {
        Some(format!(
            "all {} timestamps of the stream are equal: capture with a clock that advances within the period",
            grouped(tracked.intervals.saturating_add(1))
        ))
    } else if resolution_ns as f64 >= grid.period_ns / 2.0 {
        Some(format!(
            "timestamps are multiples of {}, too coarse for a period of {}",
            time(resolution_ns),
            time(nominal.ns)
        ))
    } else {
        None
    }
}

/// The second pass, which is not generic for the same reason.
fn second_pass(
    from: &mut dyn Read,
    filter: &Filter,
    known: &Known,
    key: Key,
    mut measure: Measure,
    clocks: &mut Clocks,
) -> Result<Measure, CaptureError> {
    let mut reader = Reader::new(from)?;
    let mut heads = Heads::default();
    while let Some(packet) = reader.next()? {
        clocks.add(&packet);
        if let Some((is_wanted, head, content)) = heads.find(&packet) {
            if is_wanted {
                measure.add(&packet, head, &content);
            }
        } else if let Some((is_wanted, head, content)) = heads.find_any(&packet) {
            if is_wanted {
                measure.add_rare(&packet, head, &content);
            }
        } else if let Ok(classified) = filter.classify(&packet, known) {
            let is_wanted = classified.key == key;
            heads.learn(&packet, &classified, is_wanted);
            if is_wanted {
                measure.add_rare(&packet, &classified.head, &classified.content);
            }
        }
    }
    Ok(measure)
}
