//! Parses WebSocket frames just far enough to distinguish messages from keep-alive frames.
//!
//! Browsers answer an app's pings by themselves, so bytes alone do not show that somebody is there.

/// Follows a client's frames (RFC 6455, section 5.2), in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The bytes received of the next frame's head.
    head: [u8; 10],
    filled: usize,
    /// The bytes still to come of the frame's mask and payload.
    rest: u64,
}

impl Frames {
    /// Whether a part of a message begins or continues in `bytes`.
    pub fn has_message(&mut self, mut bytes: &[u8]) -> bool {
        let mut found = false;
        while let Some((&first, after)) = bytes.split_first() {
            if self.rest > 0 {
                let skipped = self.rest.min(bytes.len() as u64);
                self.rest -= skipped;
                bytes = &bytes[skipped as usize..];
                continue;
            }
            self.head[self.filled] = first;
            self.filled += 1;
            bytes = after;
            if let Some(rest) = self.rest_of_frame() {
                // Continuation, text and binary are below; close, ping and pong are control frames.
                found |= self.head[0] & 0x08 == 0;
                self.rest = rest;
                self.filled = 0;
            }
        }
        found
    }

    /// The number of bytes after the head, once the head is complete.
    fn rest_of_frame(&self) -> Option<u64> {
        let (length, wanted) = match self.head[1] & 0x7f {
            _ if self.filled < 2 => return None,
            126 => (
                u64::from(u16::from_be_bytes([self.head[2], self.head[3]])),
                4,
            ),
            127 => {
                let mut length = [0; 8];
                length.copy_from_slice(&self.head[2..]);
                (u64::from_be_bytes(length), 10)
            }
            short => (u64::from(short), 2),
        };
        let mask = if self.head[1] & 0x80 == 0 { 0 } else { 4 };
        (self.filled == wanted).then(|| length.saturating_add(mask))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(opcode: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![0x80 | opcode];
        match length {
            0..126 => frame.push(0x80 | length as u8),
            126..65536 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        // Mask and payload look like heads of messages, so a parser that loses count fails the test.
        frame.extend(std::iter::repeat_n(0x81, 4 + length));
        frame
    }

    proptest! {
        #[test]
        fn messages_are_told_from_pongs_in_whatever_pieces_they_come(
            sent in prop::collection::vec((prop::sample::select(vec![0u8, 1, 2, 8, 9, 10]), prop::sample::select(vec![0usize, 1, 125, 126, 300, 65535, 65536])), 0..8),
            piece in 1usize..5000,
        ) {
            let mut frames = Frames::default();
            let mut found = false;
            let bytes: Vec<u8> = sent.iter().flat_map(|(opcode, length)| frame(*opcode, *length)).collect();
            for piece in bytes.chunks(piece) {
                found |= frames.has_message(piece);
            }
            prop_assert_eq!(found, sent.iter().any(|(opcode, _)| *opcode < 8));
            prop_assert_eq!((frames.rest, frames.filled), (0, 0));
        }
    }
}
