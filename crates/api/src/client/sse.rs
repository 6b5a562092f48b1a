//! Reading a stream of server-sent events, however its bytes are cut into chunks.

use futures::stream::{self, BoxStream, StreamExt};

use super::{Error, call::Call};
use crate::events::Event;
use crate::problem::Problem;

/// Events as they happen, on one connection. It ends when the connection does; to go on without loss or
/// repeat, open another one after the number of the last event that was seen.
pub type EventStream = BoxStream<'static, Result<Event, Error>>;

/// The name under which the server says why it ends a stream.
pub const PROBLEM_EVENT: &str = "problem";

/// No event is this large; what is, does not come from Berth.
const FRAME_MAX_BYTES: usize = 1 << 20;

pub(super) async fn open(call: Call<'_>, base: String) -> Result<EventStream, Error> {
    let answer = call.accept("text/event-stream").open().await?;
    let events = stream::try_unfold(
        (answer, Frames::default(), base),
        |(mut answer, mut frames, base)| async move {
            loop {
                while let Some(frame) = frames.next()? {
                    if let Some(event) = frame.event()? {
                        return Ok(Some((event, (answer, frames, base))));
                    }
                }
                match answer.chunk().await {
                    Ok(Some(chunk)) => frames.push(&chunk),
                    Ok(None) => return Ok(None),
                    Err(error) => return Err(Error::transport(error, &base)),
                }
            }
        },
    );
    Ok(events.boxed())
}

/// Bytes in, frames out, as the HTML standard says ("event stream interpretation").
#[derive(Debug, Default)]
struct Frames {
    /// What has come and is not yet a whole line.
    bytes: Vec<u8>,
    frame: Frame,
    begun: bool,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Frame {
    name: String,
    data: String,
}

impl Frames {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// The next whole frame, once its last byte has come.
    fn next(&mut self) -> Result<Option<Frame>, Error> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                let frame = std::mem::take(&mut self.frame);
                if !frame.data.is_empty() {
                    return Ok(Some(frame));
                }
            } else {
                self.frame.take_in(&String::from_utf8_lossy(&line));
            }
            self.check_size()?;
        }
        self.check_size()?;
        Ok(None)
    }

    fn check_size(&self) -> Result<(), Error> {
        if self.bytes.len() + self.frame.data.len() > FRAME_MAX_BYTES {
            return Err(Error::unexpected(
                "the stream of events has no end of a frame",
            ));
        }
        Ok(())
    }

    /// Cuts off the first line. Lines end with CR, LF or both; a CR at the very end waits, since its LF may follow.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|b| matches!(b, b'\r' | b'\n'))?;
        let skip = match &self.bytes[end..] {
            [b'\r'] => return None,
            [b'\r', b'\n', ..] => 2,
            _ => 1,
        };
        let mut line: Vec<u8> = self.bytes.drain(..end + skip).collect();
        line.truncate(end);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        Some(line)
    }
}

impl Frame {
    fn take_in(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_owned(),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // A comment (no field name) is a sign of life; the id stands in the data too.
            _ => {}
        }
    }

    fn event(self) -> Result<Option<Event>, Error> {
        let unreadable = |error: serde_json::Error| {
            Error::unexpected(format!(
                "the stream holds an event that does not read: {error}"
            ))
        };
        if self.name == PROBLEM_EVENT {
            let problem: Problem = serde_json::from_str(&self.data).map_err(unreadable)?;
            return Err(problem.into());
        }
        serde_json::from_str(&self.data)
            .map(Some)
            .map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: welcome\n\nid: 7\nevent: site.created\ndata: {\"a\":\ndata: \"é\"}\n\n\
        : still here\n\nid: 8\r\nevent: problem\r\ndata:x\r\n\r\ndata\n\ndata: last\r\r\n";

    fn frames_of(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut reader = Frames::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            reader.push(chunk);
            while let Some(frame) = reader.next().unwrap() {
                frames.push(frame);
            }
        }
        frames
    }

    fn expected() -> Vec<Frame> {
        let frame = |name: &str, data: &str| Frame {
            name: name.to_owned(),
            data: data.to_owned(),
        };
        vec![
            frame("site.created", "{\"a\":\n\"é\"}"),
            frame("problem", "x"),
            frame("", "last"),
        ]
    }

    #[test]
    fn a_stream_reads_the_same_however_it_is_cut() {
        let bytes = STREAM.as_bytes();
        assert_eq!(frames_of(&[bytes]), expected());
        for first in 0..=bytes.len() {
            let (a, b) = bytes.split_at(first);
            assert_eq!(frames_of(&[a, b]), expected(), "cut at {first}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(frames_of(&single), expected());
    }

    #[test]
    fn what_is_not_finished_is_not_delivered() {
        assert_eq!(frames_of(&[b"id: 9\ndata: {}\n"]), []);
    }

    #[test]
    fn a_frame_without_end_is_refused() {
        let mut reader = Frames::default();
        reader.push(&vec![b'x'; FRAME_MAX_BYTES + 1]);
        assert!(reader.next().is_err());
        let mut reader = Frames::default();
        for _ in 0..40 {
            reader.push(format!("data: {}\n", "x".repeat(FRAME_MAX_BYTES / 32)).as_bytes());
        }
        assert!(reader.next().is_err());
    }

    #[test]
    fn the_server_s_parting_words_are_a_problem() {
        let problem = Problem::new(crate::problem::Code::AuthTokenExpired);
        let frame = Frame {
            name: PROBLEM_EVENT.to_owned(),
            data: serde_json::to_string(&problem).unwrap(),
        };
        assert!(
            frame
                .event()
                .unwrap_err()
                .is(crate::problem::Code::AuthTokenExpired)
        );
    }
}
