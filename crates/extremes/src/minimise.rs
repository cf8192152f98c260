//! Minima of functions without derivatives.

/// Steps of [`simplex`]; more are not needed for the likelihoods here.
const STEPS: usize = 400;
/// The simplex has converged if its values differ by less than this. Likelihoods are known no better.
const TOLERANCE: f64 = 1e-7;

/// The minimum of `f` near `start`, with its value. `steps` are the sizes of the first simplex.
///
/// The method of J. Nelder and R. Mead (The Computer Journal 7, 1965) with its usual coefficients. `f` may be infinite,
/// but not at `start`.
pub fn simplex<const N: usize>(start: [f64; N], steps: [f64; N], f: impl Fn(&[f64; N]) -> f64) -> ([f64; N], f64) {
    let mut corners: Vec<([f64; N], f64)> = Vec::with_capacity(N + 1);
    corners.push((start, f(&start)));
    for axis in 0..N {
        let mut corner = start;
        corner[axis] += steps[axis];
        corners.push((corner, f(&corner)));
    }
    for _ in 0..STEPS {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (corners[0].1, corners[N]);
        if worst.1 - best < TOLERANCE {
            break;
        }
        let mut centre = [0.0; N];
        for (corner, _) in &corners[..N] {
            (0..N).for_each(|axis| centre[axis] += corner[axis] / N as f64);
        }
        // The point on the line from the centre to the worst corner.
        let along = |factor: f64| {
            let mut point = centre;
            (0..N).for_each(|axis| point[axis] += factor * (worst.0[axis] - centre[axis]));
            let value = f(&point);
            (point, value)
        };
        let reflected = along(-1.0);
        corners[N] = if reflected.1 < best {
            let expanded = along(-2.0);
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < corners[N - 1].1 {
            reflected
        } else {
            let contracted = if reflected.1 < worst.1 { along(-0.5) } else { along(0.5) };
            if contracted.1 < worst.1.min(reflected.1) {
                contracted
            } else {
                let nearest = corners[0].0;
                for (corner, value) in &mut corners[1..] {
                    (0..N).for_each(|axis| corner[axis] = f64::midpoint(corner[axis], nearest[axis]));
                    *value = f(corner);
                }
                corners[N]
            }
        };
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners[0]
}

/// The minimum of `f` between `low` and `high` with its value, by the golden section after a search in equal steps.
pub fn between(low: f64, high: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    /// Number of equal steps.
    const GRID: i32 = 16;
    /// Sections; each shortens the interval to 0.618 of its length.
    const SECTIONS: i32 = 28;
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let step = (high - low) / f64::from(GRID);
    let at = |index: i32| low + step * f64::from(index);
    let (mut best, mut least) = (0, f64::INFINITY);
    for index in 0..=GRID {
        let value = f(at(index));
        if value < least {
            (best, least) = (index, value);
        }
    }
    let (mut left, mut right) = (at(best - 1).max(low), at(best + 1).min(high));
    let inner = |left: f64, right: f64| (right - GOLDEN * (right - left), left + GOLDEN * (right - left));
    let (mut a, mut b) = inner(left, right);
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..SECTIONS {
        if at_a <= at_b {
            (right, b, at_b) = (b, a, at_a);
            a = inner(left, right).0;
            at_a = f(a);
        } else {
            (left, a, at_a) = (a, b, at_b);
            b = inner(left, right).1;
            at_b = f(b);
        }
    }
    [(a, at_a), (b, at_b), (at(best), least)].into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((a, at_a))
}

/// The last point from `inside` to `outside` where `is_inside` holds, after so many halvings of their distance.
pub fn border(mut inside: f64, mut outside: f64, halvings: u32, mut is_inside: impl FnMut(f64) -> bool) -> f64 {
    for _ in 0..halvings {
        let middle = f64::midpoint(inside, outside);
        if is_inside(middle) { inside = middle } else { outside = middle }
    }
    inside
}
