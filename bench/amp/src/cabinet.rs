//! Cabinets, compared with fft-convolver's two-stage convolver: the median, and the 99th percentile of the blocks,
//! which limits how small a buffer can be.

use std::hint::black_box;

use amp::{Cabinet, InstructionSet, Ir};
use anyhow::{Result, anyhow};
use fft_convolver::TwoStageFFTConvolver;

use crate::{
    Arguments,
    rounds::{Engine, Times, alternate},
    row::Row,
};

/// Samples of the response, frames of a block, and upper limits for the ratios of the median and the 99th percentile.
type Case = (usize, usize, Option<(f64, f64)>);

const CASES: [Case; 4] = [(2048, 64, None), (8192, 64, Some((1.0, 0.5))), (8192, 16, None), (48_000, 64, None)];

/// Measures all selected cabinets.
pub fn rows(arguments: &Arguments) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (taps, frames, targets) in CASES {
        let name = format!("cabinet of {taps}, {frames} frames");
        if !arguments.has(&name) {
            continue;
        }
        eprintln!("{name}");
        let response = noise(taps);
        let mut engines = vec![ours(&response, frames, arguments.level)?];
        if !arguments.ours {
            engines.push(peer(&response, frames)?);
        }
        let mut times = alternate(&mut engines, arguments.effort).into_iter();
        let ours = times.next().unwrap_or_default();
        let peer = times.next();
        let (median, late) = targets.filter(|_| peer.is_some()).unzip();
        rows.push(Row::new(name.clone(), ours.clone(), peer.clone(), median));
        rows.push(Row::new(format!("{name}, 99th percentile"), ours.late(), peer.as_ref().map(Times::late), late));
    }
    Ok(rows)
}

fn ours(response: &[f32], frames: usize, level: InstructionSet) -> Result<Engine<'static>> {
    let mut cabinet = Cabinet::with_instructions(&Ir::new(48_000, vec![response.to_vec()])?, level);
    let (input, mut left, mut right) = (noise(frames), vec![0.0; frames], vec![0.0; frames]);
    Ok(Box::new(move || {
        cabinet.process(&input, &mut left, &mut right);
        black_box(&left);
    }))
}

fn peer(response: &[f32], frames: usize) -> Result<Engine<'static>> {
    let mut convolver = TwoStageFFTConvolver::<f32>::default();
    convolver.init_default(frames, response).map_err(|error| anyhow!("fft-convolver: {error:?}"))?;
    let (input, mut output) = (noise(frames), vec![0.0; frames]);
    Ok(Box::new(move || {
        let played = convolver.process(&input, &mut output);
        black_box((played.is_ok(), &output));
    }))
}

/// Noise with a fixed seed.
fn noise(len: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..len).map(|_| next()).collect()
}
