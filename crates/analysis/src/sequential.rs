//! Conclusions from a run that ends as soon as they can be drawn.
//!
//! A bound for a run of fixed length is wrong too often if somebody looks at every moment and stops when it suits. The
//! evidence here is a mixture of likelihood ratios: the probability of the counted stalls under other rates, divided by
//! that under the tolerated rate. If the tolerated rate is true, the evidence ever reaches 20 with a probability of at
//! most 1/20 (Ville's inequality; see A. Ramdas and others, "Game-theoretic statistics and safe anytime-valid
//! inference", Statistical Science 38, 2023).

/// Evidence at which a conclusion holds at 95 %.
pub(crate) const ENOUGH: f64 = 20.0;

/// Weight of the rate 0 among the lower rates; the others are weighted equally.
const WEIGHT_OF_NONE: f64 = 0.8;
/// Mean excess of the higher rates, in tolerated rates: `1 / steepness`. Each steepness has the same weight.
const STEEPNESSES: [f64; 4] = [1.0, 0.1, 0.01, 0.001];

/// Counts above which the evidence is not summed. A stall lasts a second, so only records that no run wrote have more.
const MOST_SUMMED: f64 = 1e6;

/// The evidence of large counts: none, or more than enough if they differ by more than ten standard deviations.
fn of_large(more: f64, fewer: f64) -> Option<f64> {
    let larger = more.max(fewer);
    (larger > MOST_SUMMED).then(|| if more - fewer > 10.0 * larger.sqrt() { f64::INFINITY } else { 0.0 })
}

/// Evidence that stalls are rarer than tolerated, if `stalls` were counted and `tolerated` would be tolerated in the time.
///
/// With `x = tolerated` and `k = stalls`, a rate of `r` times the tolerated one has the likelihood ratio
/// `r^k exp(x (1 - r))`. Its mean over r from 0 to 1 is the sum over i of `x^i k! / (k+1+i)!`.
pub(crate) fn evidence_of_fewer(stalls: u64, tolerated: f64) -> f64 {
    let k = stalls as f64;
    if let Some(evidence) = of_large(tolerated, k) {
        return evidence;
    }
    let (mut sum, mut term, mut next) = (0.0, 1.0 / (k + 1.0), k + 2.0);
    while term > sum * 1e-16 && f64::is_finite(sum) {
        sum += term;
        term *= tolerated / next;
        next += 1.0;
    }
    let none = if stalls == 0 { tolerated.exp() } else { 0.0 };
    WEIGHT_OF_NONE * none + (1.0 - WEIGHT_OF_NONE) * sum
}

/// Evidence that stalls are more frequent than tolerated; arguments as for [`evidence_of_fewer`].
///
/// The mean of the likelihood ratio over r from 1, with the density `s exp(-s (r - 1))` and `y = x + s`, follows from
/// integration by parts: `m(0) = s / y`, `m(k) = (s + k m(k-1)) / y`.
pub(crate) fn evidence_of_more(stalls: u64, tolerated: f64) -> f64 {
    if let Some(evidence) = of_large(stalls as f64, tolerated) {
        return evidence;
    }
    let of = |steepness: f64| {
        let y = tolerated + steepness;
        let mut mean = steepness / y;
        for k in 1..=stalls {
            mean = (steepness + k as f64 * mean) / y;
            if !mean.is_finite() {
                break;
            }
        }
        mean
    };
    STEEPNESSES.map(of).iter().sum::<f64>() / STEEPNESSES.len() as f64
}

/// The smallest `tolerated` at which `stalls` are shown to be fewer.
pub(crate) fn enough_for_fewer(stalls: u64) -> f64 {
    let (mut low, mut high) = (0.0, stalls as f64 + 4.0);
    while evidence_of_fewer(stalls, high) < ENOUGH {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if evidence_of_fewer(stalls, middle) < ENOUGH { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_matches_its_integral() {
        let integral = |k: i32, x: f64, density: &dyn Fn(f64) -> f64, from: f64, to: f64| {
            let steps = 2_000_000;
            let width = (to - from) / f64::from(steps);
            let at = |i: i32| from + (f64::from(i) + 0.5) * width;
            (0..steps).map(|i| density(at(i)) * at(i).powi(k) * (x * (1.0 - at(i))).exp() * width).sum::<f64>()
        };
        for (k, x) in [(0, 2.0), (1, 9.0), (5, 17.0), (3, 0.5)] {
            let fewer = 0.2 * integral(k, x, &|_| 1.0, 0.0, 1.0) + if k == 0 { 0.8 * x.exp() } else { 0.0 };
            let found = evidence_of_fewer(k.unsigned_abs().into(), x);
            assert!((found / fewer - 1.0).abs() < 1e-4, "{k} in {x}: {found}, {fewer}");
            let density = |r: f64| STEEPNESSES.iter().map(|s| s * (-s * (r - 1.0)).exp()).sum::<f64>() / 4.0;
            let more = integral(k, x, &density, 1.0, 1.0 + 60.0 / x);
            let found = evidence_of_more(k.unsigned_abs().into(), x);
            assert!((found / more - 1.0).abs() < 1e-3, "{k} in {x}: {found}, {more}");
        }
    }

    #[test]
    fn a_conclusion_takes_little_more_than_with_a_fixed_length() {
        // A fixed length needs 3.0, 4.7 and 10.5 tolerated stalls in its time.
        for (stalls, least, most) in [(0, 3.0, 3.2), (1, 4.7, 9.5), (5, 10.5, 17.5)] {
            let enough = enough_for_fewer(stalls);
            assert!(enough > least && enough < most, "{stalls}: {enough}");
        }
        assert!(evidence_of_more(1, 0.005) > ENOUGH && evidence_of_more(1, 0.1) < ENOUGH);
        assert!(evidence_of_more(1_000_000, 10.0) > ENOUGH && evidence_of_fewer(0, 1e6) > ENOUGH);
        assert!(evidence_of_more(u64::MAX, 1e15) > ENOUGH && evidence_of_fewer(1 << 60, 2e18) > ENOUGH);
        assert!(evidence_of_more(u64::MAX, 1.844e19) > ENOUGH && evidence_of_fewer(u64::MAX, 1e15) < 1.0);
        assert!(evidence_of_more(10_000_000, 1e7) < 1.0 && enough_for_fewer(u64::MAX) > u64::MAX as f64);
        assert!(evidence_of_more(3, 1e9) < 1.0 && evidence_of_fewer(1_000_000, 10.0) < 1.0);
    }
}
