//! A Linear model, compared with fft-convolver's plain convolver: the median, and the 99th percentile of the blocks in
//! times of their median.

use std::{fs, hint::black_box};

use amp::{ModelFile, file::Options};
use anyhow::{Context, Result, anyhow};
use fft_convolver::FFTConvolver;

use crate::{
    Arguments,
    models::{input, vectors},
    rounds::{Engine, alternate},
    row::Row,
};

/// Frames of a block, and upper limits: of the ratio to the peer, and of the 99th percentile in times of the median.
type Case = (usize, f64, Option<f64>);

/// On a shared machine, interruptions reach the 99th percentile of long blocks.
const CASES: [Case; 4] = [(16, 1.0, Some(1.2)), (32, 1.0, Some(1.2)), (64, 1.0, Some(1.2)), (128, 1.0, None)];

/// Measures all selected lengths of a block.
pub fn rows(arguments: &Arguments) -> Result<Vec<Row>> {
    let bytes = fs::read(vectors().join("linear_2048.nam"))?;
    let input = input()?;
    let mut rows = Vec::new();
    for (frames, most, late) in CASES {
        let name = format!("Linear 2048, blocks of {frames}");
        if !arguments.has(&name) {
            continue;
        }
        eprintln!("{name}");
        let mut model =
            ModelFile::read(&bytes)?.model(Options { instructions: arguments.level, ..Options::default() })?;
        let (mut blocks, mut output) = (input.chunks_exact(frames).cycle(), vec![0.0; frames]);
        let mut engines: Vec<Engine<'_>> = vec![Box::new(move || {
            model.process(blocks.next().unwrap_or_default(), &mut output);
            black_box(&output);
        })];
        if !arguments.ours {
            engines.push(peer(&bytes, &input, frames)?);
        }
        let mut times = alternate(&mut engines, arguments.effort).into_iter();
        let (ours, peer) = (times.next().unwrap_or_default(), times.next());
        let target = peer.as_ref().map(|_| most);
        rows.push(Row::new(name.clone(), ours.clone(), peer, target));
        rows.push(Row::new(format!("{name}, 99th percentile vs median"), ours.late(), Some(ours), late));
    }
    Ok(rows)
}

/// fft-convolver with the weights of the file.
fn peer<'a>(bytes: &[u8], input: &'a [f32], frames: usize) -> Result<Engine<'a>> {
    let file: serde_json::Value = serde_json::from_slice(bytes)?;
    let weights: Vec<f32> = serde_json::from_value(file["weights"].clone()).context("weights")?;
    let mut convolver = FFTConvolver::<f32>::default();
    convolver.init(frames, &weights).map_err(|error| anyhow!("fft-convolver: {error:?}"))?;
    let (mut blocks, mut output) = (input.chunks_exact(frames).cycle(), vec![0.0; frames]);
    Ok(Box::new(move || {
        let played = convolver.process(blocks.next().unwrap_or_default(), &mut output);
        black_box((played.is_ok(), &output));
    }))
}
