//! Reads any bytes as the serial line of the judge, as messages of latmon, and as a request of latmus.
#![no_main]

use judge::{
    decoder::{Decoder, Item, Reply},
    frame::{Frame, decode, encode},
    latmon::{self, Message, Request},
    settings::Settings,
    tally::Tally,
};
use libfuzzer_sys::fuzz_target;
use record::{JudgeProtocol, Responses};

fn tally(protocol: JudgeProtocol) -> Tally {
    Tally::new(Responses { protocol, ..Responses::default() }, 1_000_000)
}

/// The serial line: decoded frames and settings come back, and are counted without overflow.
fn line(bytes: &[u8]) {
    let (mut decoder, mut tally) = (Decoder::default(), tally(JudgeProtocol::Punctual));
    for chunk in bytes.chunks(64) {
        decoder.push(chunk);
        while let Some(item) = decoder.take() {
            match item {
                Item::Reply(Reply::Ok(text)) => {
                    if let Some(settings) = Settings::parse(&text) {
                        assert_eq!(Settings::parse(&settings.to_string()), Some(settings));
                    }
                }
                Item::Reply(Reply::Error(text)) => assert!(text.is_ascii()),
                Item::Frame(frame) => {
                    assert_eq!(decode(&encode(&frame)), Some(frame));
                    let _ = match frame {
                        Frame::Result(result) => tally.add_result(&result),
                        Frame::End(end) => tally.add_end(&end),
                    };
                }
            }
        }
    }
    let series = tally.to_series("rest");
    assert_eq!(series.samples, series.raw.total());
}

/// latmon: the histogram has all answers that were sent.
fn messages(bytes: &[u8], cells: u32) {
    let (mut decoder, mut tally) = (latmon::Decoder::new(cells), tally(JudgeProtocol::Latmon));
    for chunk in bytes.chunks(100) {
        decoder.push(chunk);
        while let Some(message) = decoder.take() {
            match message {
                Message::Bulk(bulk) => tally.add_bulk(&bulk, 1),
                Message::Cells(cells) => drop(tally.set_cells(cells)),
                Message::Contradiction(bulk) => assert!(bulk.samples > 0),
            }
        }
    }
    let series = tally.to_series("rest");
    assert_eq!(series.samples, series.raw.total());
}

fuzz_target!(|bytes: &[u8]| {
    line(bytes);
    let Some((&request, rest)) = bytes.split_first_chunk::<8>() else { return };
    let request = Request::decode(request);
    assert_eq!(Request::decode(request.encode()), request);
    messages(rest, request.cells % 50);
});
