//! The messages between latmon, on a board, and latmus, on the machine under test. All numbers are big-endian.
//!
//! latmus sends a [`Request`]. latmon then sends a [`Bulk`] about once a second, until a request with the period 0. It
//! answers that with the last bulk if there is one, a bulk of 0 samples, and the histogram, if one was requested.
//!
//! latmon waits up to 1 s for each answer. It discards the time of a question without an answer, and only counts an
//! overrun, so its histogram does not contain the worst case.

/// Length of a request, bytes.
pub const REQUEST_BYTES: usize = 8;
/// Length of a bulk, bytes.
pub const BULK_BYTES: usize = 24;
/// Most cells of a histogram.
pub const CELLS_MAX: u32 = 1000;
/// Longest period, us.
pub const PERIOD_MAX_US: u32 = 1_000_000;

/// The request to start or to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Time between two questions, us; 0 stops.
    pub period_us: u32,
    /// Cells of the histogram, of 1 us each; 0 for none.
    pub cells: u32,
}

/// The times of about a second, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bulk {
    /// Sum of the times.
    pub sum_ns: u64,
    /// Smallest time.
    pub min_ns: u32,
    /// Largest time.
    pub max_ns: u32,
    /// Questions without an answer, and whole periods that answers took.
    pub overruns: u32,
    /// Number of answers; 0 in the last bulk.
    pub samples: u32,
}

impl Request {
    /// The request to stop.
    pub const STOP: Self = Self { period_us: 0, cells: 0 };

    /// The request as bytes.
    #[must_use]
    pub fn encode(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&self.period_us.to_be_bytes());
        bytes[4..].copy_from_slice(&self.cells.to_be_bytes());
        bytes
    }

    /// Reads a request. Its values can be out of range.
    #[must_use]
    pub fn decode(bytes: [u8; REQUEST_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self { period_us: u32::from_be_bytes([a, b, c, d]), cells: u32::from_be_bytes([e, f, g, h]) }
    }

    /// True if latmon obeys it.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.period_us <= PERIOD_MAX_US && self.cells <= CELLS_MAX
    }
}

impl Bulk {
    /// The bulk as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; BULK_BYTES] {
        let mut bytes = [0; BULK_BYTES];
        bytes[..8].copy_from_slice(&self.sum_ns.to_be_bytes());
        let rest = [self.min_ns, self.max_ns, self.overruns, self.samples];
        bytes[8..].chunks_exact_mut(4).zip(rest).for_each(|(field, value)| field.copy_from_slice(&value.to_be_bytes()));
        bytes
    }

    /// Reads a bulk; `Err` if its times contradict each other.
    ///
    /// # Errors
    /// The bulk, if its sum does not fit to its smallest and largest time.
    pub fn decode(bytes: &[u8; BULK_BYTES]) -> Result<Self, Self> {
        let (sum, rest) = bytes.split_at(8);
        let mut fields =
            rest.chunks_exact(4).map(|field| field.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)));
        let mut field = || fields.next().unwrap_or_default();
        let sum_ns = sum.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let bulk = Self { sum_ns, min_ns: field(), max_ns: field(), overruns: field(), samples: field() };
        let at = |time_ns: u32| u64::from(time_ns) * u64::from(bulk.samples);
        // The times of the last bulk are of no answer.
        let fits = bulk.samples == 0 || (at(bulk.min_ns)..=at(bulk.max_ns)).contains(&sum_ns);
        if fits { Ok(bulk) } else { Err(bulk) }
    }
}

/// The cells of a histogram as bytes.
#[must_use]
pub fn encode_cells(cells: &[u32]) -> Vec<u8> {
    cells.iter().flat_map(|count| count.to_be_bytes()).collect()
}

/// A message of latmon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Times of about a second.
    Bulk(Bulk),
    /// The histogram, the last message.
    Cells(Vec<u64>),
    /// A bulk whose times contradict each other.
    Contradiction(Bulk),
}

/// Splits the bytes of latmon into messages. It keeps at most the bytes of one histogram.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    used: usize,
    cells: usize,
    has_ended: bool,
}

impl Decoder {
    /// A decoder after a request for this number of cells, at most [`CELLS_MAX`].
    #[must_use]
    pub fn new(cells: u32) -> Self {
        Self { bytes: Vec::new(), used: 0, cells: cells.min(CELLS_MAX) as usize, has_ended: false }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message; `None` if more bytes are needed, or after the histogram.
    pub fn take(&mut self) -> Option<Message> {
        let left = self.bytes.get(self.used..)?;
        if self.has_ended {
            let cells = left.get(..self.cells * 4).filter(|_| self.cells > 0)?.chunks_exact(4);
            let cells = cells.map(|cell| cell.iter().fold(0, |count, &byte| count << 8 | u64::from(byte))).collect();
            (self.used, self.cells) = (self.bytes.len(), 0);
            return Some(Message::Cells(cells));
        }
        let bulk = Bulk::decode(left.first_chunk()?);
        self.used += BULK_BYTES;
        match bulk {
            Ok(bulk) => {
                self.has_ended = bulk.samples == 0;
                Some(Message::Bulk(bulk))
            }
            Err(bulk) => Some(Message::Contradiction(bulk)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_has_the_bytes_of_latmus() {
        let request = Request { period_us: 1000, cells: 200 };
        assert_eq!(request.encode(), [0, 0, 3, 232, 0, 0, 0, 200]);
        assert_eq!(Request::decode(request.encode()), request);
        assert_eq!(Request::STOP.encode(), [0; 8]);
        assert!(request.is_valid() && Request { cells: 1000, period_us: 1_000_000 }.is_valid());
        assert!(
            !Request { cells: 1001, ..request }.is_valid() && !Request { period_us: 1_000_001, ..request }.is_valid()
        );
    }

    #[test]
    fn a_bulk_has_the_bytes_of_latmon() {
        // sum_lat_hi, sum_lat_lo, min_lat, max_lat, overruns, samples.
        let bytes = [[0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0x10, 0], [0, 0x12, 0x34, 0x56], [0, 0, 0, 3], [0, 1, 0, 0]];
        let bulk = Bulk { sum_ns: 0x1_0000_0002, min_ns: 0x1000, max_ns: 0x12_3456, overruns: 3, samples: 0x1_0000 };
        assert_eq!(bulk.encode().as_slice(), bytes.as_flattened());
        assert_eq!(Bulk::decode(&bulk.encode()), Ok(bulk));
        let wrong = Bulk { sum_ns: 1, ..bulk };
        assert_eq!(Bulk::decode(&wrong.encode()), Err(wrong), "the sum is less than the smallest time");
    }

    fn messages(bytes: &[u8], cells: u32, size: usize) -> Vec<Message> {
        let mut decoder = Decoder::new(cells);
        let take = |chunk| {
            decoder.push(chunk);
            std::iter::from_fn(|| decoder.take()).collect::<Vec<_>>()
        };
        bytes.chunks(size.max(1)).flat_map(take).collect()
    }

    #[test]
    fn the_histogram_follows_the_empty_bulk() {
        let bulk = Bulk { sum_ns: 30, min_ns: 10, max_ns: 20, overruns: 0, samples: 2 };
        let end = Bulk { overruns: 1, ..Bulk::default() };
        let stream = [&bulk.encode()[..], &end.encode(), &encode_cells(&[5, 0, 7])].concat();
        let expected = [Message::Bulk(bulk), Message::Bulk(end), Message::Cells(vec![5, 0, 7])];
        for size in [1, 7, 24, 100] {
            assert_eq!(messages(&stream, 3, size), expected);
        }
        assert_eq!(messages(&stream, 0, 100), expected[..2], "without a histogram");
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_not(bytes in prop::collection::vec(any::<u8>(), 0..400), cells in 0..60u32, size in 1..50_usize) {
            prop_assert_eq!(messages(&bytes, cells, bytes.len()), messages(&bytes, cells, size));
        }

        #[test]
        fn a_bulk_comes_back(min_ns: u32, more: u32, overruns: u32, samples: u32) {
            let max_ns = min_ns.saturating_add(more);
            let bulk = Bulk { sum_ns: u64::from(max_ns) * u64::from(samples), min_ns, max_ns, overruns, samples };
            prop_assert_eq!(Bulk::decode(&bulk.encode()), Ok(bulk));
        }
    }
}
