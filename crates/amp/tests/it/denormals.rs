//! Denormal numbers, in which decaying signals end, must not slow down processing.

use std::{fs, path::PathBuf, time::Instant};

use amp::{Cabinet, Ir, ModelFile, file::Options};

/// Number of blocks of 64 frames that fill the history with denormal numbers.
const BLOCKS: usize = 64;
/// Number of repetitions. Only the shortest time counts.
const ROUNDS: usize = 12;

#[test]
fn denormal_input_takes_no_longer_than_sound_without_a_chain() {
    for name in ["linear_2048.nam", "lstm_1x16.nam", "wn_a1_nano.nam"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
        let file = ModelFile::read(&fs::read(path).unwrap()).unwrap();
        let mut model = file.model(Options::default()).unwrap();
        let mut shortest = [f64::MAX; 2];
        for _ in 0..ROUNDS {
            for (level, shortest) in [0.1, 1e-40].into_iter().zip(&mut shortest) {
                let (input, mut output) = ([level; 64], [0.0; 64]);
                (0..BLOCKS).for_each(|_| model.process(&input, &mut output));
                for _ in 0..BLOCKS {
                    let began = Instant::now();
                    model.process(&input, &mut output);
                    *shortest = began.elapsed().as_secs_f64().min(*shortest);
                }
            }
        }
        let [sound, denormal] = shortest;
        assert!(denormal < 2.0 * sound, "{name}: {denormal:e} s per block, {sound:e} s for sound");
    }
}

#[test]
fn a_cabinet_treats_denormal_numbers_as_zero_without_a_chain() {
    // Long enough for partitions after the direct part.
    let mut cabinet = Cabinet::new(&Ir::new(48_000, vec![vec![0.9; 2048]]).unwrap());
    let (mut left, mut right) = ([1.0; 64], [1.0; 64]);
    for _ in 0..64 {
        cabinet.process(&[1e-40; 64], &mut left, &mut right);
        assert_eq!((left, right), ([0.0; 64], [0.0; 64]));
    }
}
