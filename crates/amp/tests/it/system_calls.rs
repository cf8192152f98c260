//! Playing makes no system call: it completes on a thread that the kernel kills at any call but `read` and `write`.

use std::{
    fmt::Display,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use amp::{Amplifier, Cabinet, Chain, InstructionSet, Ir, Model, ModelFile, Parts, Settings, file::Options};
use rustix::{
    process::getpid,
    thread::{SecureComputingMode, gettid, set_secure_computing_mode},
};

use crate::{bytes, manifest, samples};

const RUNNING: u8 = 0;
const DONE: u8 = 1;
const REFUSED: u8 = 2;

/// True if `work` completed on such a thread; `None` if the kernel cannot confine threads. The result is never freed,
/// because that may make a system call.
fn calls_nothing<T>(work: impl FnOnce() -> T + Send + 'static) -> Option<bool> {
    let state = Arc::new(AtomicU8::new(RUNNING));
    let (sender, receiver) = mpsc::channel();
    let of_thread = Arc::clone(&state);
    thread::spawn(move || {
        let _ = sender.send(gettid());
        drop(sender);
        if set_secure_computing_mode(SecureComputingMode::Strict).is_err() {
            of_thread.store(REFUSED, Ordering::Release);
            return;
        }
        std::mem::forget(work());
        of_thread.store(DONE, Ordering::Release);
        // Not allowed: the thread ends here, before its cleanup.
        let _ = getpid();
    });
    let task = PathBuf::from(format!("/proc/self/task/{}", receiver.recv().unwrap()));
    while task.exists() && state.load(Ordering::Acquire) == RUNNING {
        thread::sleep(Duration::from_millis(1));
    }
    match state.load(Ordering::Acquire) {
        REFUSED => None,
        state => Some(state == DONE),
    }
}

fn assert_calls_nothing<T>(what: impl Display, work: impl FnOnce() -> T + Send + 'static) {
    match calls_nothing(work) {
        Some(calls_nothing) => assert!(calls_nothing, "{what} made a system call while playing"),
        None => eprintln!("SKIPPED: {what}: the kernel cannot confine a thread (prctl PR_SET_SECCOMP)"),
    }
}

#[test]
fn a_system_call_ends_the_thread() {
    assert_ne!(calls_nothing(|| 1), Some(false));
    assert_ne!(calls_nothing(thread::yield_now), Some(true));
}

#[test]
fn no_model_makes_a_system_call() {
    for case in manifest().cases {
        let input = samples(&case.input);
        for instructions in InstructionSet::all() {
            let (mut model, input): (Model, _) = (case.model(instructions), input[..input.len().min(2048)].to_vec());
            let mut output = vec![0.0; input.len()];
            assert_calls_nothing(format!("{} with {}", case.name, instructions.name()), move || {
                for frames in [64, 16, 100] {
                    for (input, output) in input.chunks(frames).zip(output.chunks_mut(frames)) {
                        model.process(input, output);
                    }
                }
                (model, input, output)
            });
        }
    }
}

#[test]
fn the_chain_makes_no_system_call() {
    let amplifier = |name: &str| {
        let file = ModelFile::read(&bytes(name)).unwrap();
        Some(Amplifier::new(&file, Options::default(), &[], 48_000).unwrap())
    };
    let response = |frames: usize| (0..frames).map(|n| 1.0 / (1.0 + n as f32)).collect();
    let cabinet = Cabinet::new(&Ir::new(48_000, vec![response(9000), response(3000)]).unwrap());
    // The second model is resampled.
    let models = [amplifier("wn_a1_nano.nam"), amplifier("guitarml_lstm20.json")];
    let parts = Parts { models, cabinet: Some(cabinet), ..Parts::default() };
    let (mut chain, controls) = Chain::new(48_000, &Settings::default(), parts);
    let input = samples("wn_a1_nano.in.f32");
    let (mut left, mut right) = (vec![0.0; input.len()], vec![0.0; input.len()]);
    assert_calls_nothing("the chain", move || {
        for (at, block) in input.chunks(64).enumerate().map(|(index, block)| (index * 64, block)) {
            let part = at..at + block.len();
            chain.process(block, &mut left[part.clone()], &mut right[part]);
        }
        (chain, input, left, right)
    });
    drop(controls);
}
