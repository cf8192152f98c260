//! Two guests with connected cards: round trips over one pair, a stream over the other. They use the host's clock, so
//! only counts are asserted.

use std::{
    net::{Ipv4Addr, UdpSocket},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sys::link::Links;

use super::nics::{listen, listener_of, round_trip, set_up, talker};
use crate::inside::{expect, punctual, recorded, start, wait_until};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The port over which the guests synchronise.
const PORT: u16 = 7000;
const READY: &[u8] = b"ready?";
/// Booting a guest can be slow.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Sends requests and a stream, and then reports the number of sent frames to the other guest.
pub fn ask_and_talk() -> Result<()> {
    let control = socket(NEAR)?;
    set_up("eth1")?;
    report(&control, READY)?;
    expect(
        0,
        &punctual(&format!(
            "measure udp {FAR} --quiet --record asked --samples 300 --period 5ms --timeout 20s --blame=off"
        ))?,
    )?;
    let trips = round_trip(&recorded("asked")?)?;
    let answered = trips.sent - trips.lost;
    ensure!(trips.sent > 0 && trips.sent + trips.send_failed <= trips.slots, "{trips:?}");
    ensure!(answered == trips.sent && trips.duplicates == 0 && trips.foreign == 0, "{trips:?}");

    let options = "--quiet --record talked --period 5ms --duration 2s --blame=off";
    expect(0, &punctual(&format!("measure stream talk eth1 {options}"))?)?;
    let talker = talker(&recorded("talked")?)?;
    ensure!(talker.frames > 0, "{talker:?}");
    report(&control, talker.frames.to_string().as_bytes())
}

/// Answers and listens until it receives the number of sent frames.
pub fn answer_and_listen() -> Result<()> {
    let control = socket(FAR)?;
    set_up("eth1")?;
    let echo = start(&format!("echo --bind {FAR} --json --ready /tmp/answers"))?;
    wait_until("the echo server is ready", || Ok(std::fs::exists("/tmp/answers")?))?;
    let listener = listen("eth1", "listened", "--period 5ms")?;
    ensure!(next_message(&control)?.as_bytes() == READY, "unexpected message");
    let sent: u64 = loop {
        // The first message may have arrived twice.
        match next_message(&control)?.parse() {
            Ok(sent) => break sent,
            Err(_) => continue,
        }
    };
    expect(0, &listener.wait_with_output()?)?;
    kill_process(Pid::from_child(&echo), Signal::INT)?;
    let answered: serde_json::Value = serde_json::from_str(&expect(0, &echo.wait_with_output()?)?)?;
    ensure!(answered["strangers"] == 0 && answered["failed"] == 0, "{answered}");
    let listener = listener_of(&recorded("listened")?)?;
    ensure!(listener.frames == sent && listener.lost == 0, "{} frames sent: {listener:?}", sent);
    ensure!(listener.duplicates == 0 && listener.reordered == 0 && listener.wrong_tag == 0, "{listener:?}");
    Ok(())
}

/// The control connection of the guests, over the first card.
fn socket(own: Ipv4Addr) -> Result<UdpSocket> {
    let index = set_up("eth0")?;
    Links::open()?.add_address(index, own, 24)?;
    let socket = UdpSocket::bind((own, PORT))?;
    socket.connect((if own == NEAR { FAR } else { NEAR }, PORT))?;
    Ok(socket)
}

/// Sends a message until it is echoed.
fn report(socket: &UdpSocket, message: &[u8]) -> Result<()> {
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut answer = [0; 32];
    for _ in 0..TIMEOUT.as_millis() / 200 {
        // The other guest may not be ready yet, so both calls can fail.
        let _ = socket.send(message);
        if socket.recv(&mut answer).is_ok_and(|length| &answer[..length] == message) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    anyhow::bail!("the other guest did not answer")
}

/// Receives the next message and echoes it.
fn next_message(socket: &UdpSocket) -> Result<String> {
    socket.set_read_timeout(Some(TIMEOUT))?;
    let mut message = [0; 32];
    let length = socket.recv(&mut message).context("no message from the other guest")?;
    socket.send(&message[..length])?;
    Ok(String::from_utf8_lossy(&message[..length]).into_owned())
}
