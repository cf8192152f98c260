//! Two guests with a cable between each two cards: round trips over one pair, a stream over the other. Their time is the
//! host's, so that counts are all that is asserted.

use std::{
    net::{Ipv4Addr, UdpSocket},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sys::link::Links;

use super::nics::{heard, listen, round_trip, set_up, talker};
use crate::inside::{expect, punctual, recorded, start, wait_until};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Over this port the guests tell each other how far they are.
const PORT: u16 = 7000;
const READY: &[u8] = b"ready?";
/// A guest may be slow to boot.
const PATIENCE: Duration = Duration::from_secs(90);

/// Asks and talks, and tells the other guest how many frames it has sent.
pub fn ask_and_talk() -> Result<()> {
    let word = socket(NEAR)?;
    set_up("eth1")?;
    tell(&word, READY)?;
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
    tell(&word, talker.frames.to_string().as_bytes())
}

/// Answers and listens, until it is told how many frames there were.
pub fn answer_and_listen() -> Result<()> {
    let word = socket(FAR)?;
    set_up("eth1")?;
    let echo = start(&format!("echo --bind {FAR} --json --ready /tmp/answers"))?;
    wait_until("it answers", || Ok(std::fs::exists("/tmp/answers")?))?;
    let listener = listen("eth1", "listened", "--period 5ms")?;
    ensure!(heard_word(&word)?.as_bytes() == READY, "another word was due");
    let sent: u64 = loop {
        // The question may have come twice.
        match heard_word(&word)?.parse() {
            Ok(sent) => break sent,
            Err(_) => continue,
        }
    };
    expect(0, &listener.wait_with_output()?)?;
    kill_process(Pid::from_child(&echo), Signal::INT)?;
    let answered: serde_json::Value = serde_json::from_str(&expect(0, &echo.wait_with_output()?)?)?;
    ensure!(answered["strangers"] == 0 && answered["failed"] == 0, "{answered}");
    let listener = heard(&recorded("listened")?)?;
    ensure!(listener.frames == sent && listener.lost == 0, "{} frames were sent: {listener:?}", sent);
    ensure!(listener.duplicates == 0 && listener.reordered == 0 && listener.wrong_tag == 0, "{listener:?}");
    Ok(())
}

/// For the guests' words to each other, over the first card.
fn socket(own: Ipv4Addr) -> Result<UdpSocket> {
    let index = set_up("eth0")?;
    Links::open()?.add_address(index, own, 24)?;
    let socket = UdpSocket::bind((own, PORT))?;
    socket.connect((if own == NEAR { FAR } else { NEAR }, PORT))?;
    Ok(socket)
}

/// Says a word until it is said back.
fn tell(socket: &UdpSocket, word: &[u8]) -> Result<()> {
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut answer = [0; 32];
    for _ in 0..PATIENCE.as_millis() / 200 {
        // The other guest may not be there yet: both may be refused.
        let _ = socket.send(word);
        if socket.recv(&mut answer).is_ok_and(|length| &answer[..length] == word) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    anyhow::bail!("the other guest did not answer")
}

/// The next word, said back.
fn heard_word(socket: &UdpSocket) -> Result<String> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut word = [0; 32];
    let length = socket.recv(&mut word).context("the other guest has not said a word")?;
    socket.send(&word[..length])?;
    Ok(String::from_utf8_lossy(&word[..length]).into_owned())
}
