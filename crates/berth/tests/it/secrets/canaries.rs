//! Secrets that can be recognised wherever they turn up, in any of the forms in which they might.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};

/// The secrets that were planted.
#[derive(Debug, Default)]
pub struct Canaries(Vec<(String, Vec<Vec<u8>>)>);

/// Something that can be read: what it is, and its bytes.
pub type Readable = (String, Vec<u8>);

impl Canaries {
    /// A new secret, to be used as a password or whatever is secret.
    pub fn plant(&mut self, what: &str) -> String {
        let random = RandomState::new();
        let secret = format!(
            "canary-{:016x}{:016x}",
            random.hash_one(what),
            random.hash_one(self.0.len())
        );
        self.keep(what, &secret);
        secret
    }

    /// Looks out for a secret that somebody else made.
    pub fn keep(&mut self, what: &str, secret: &str) {
        assert!(
            secret.len() >= 16,
            "{what} is too short to be recognised: {secret}"
        );
        let bytes = secret.as_bytes();
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a text");
            hex
        });
        let wide = bytes.iter().flat_map(|byte| [*byte, 0]).collect();
        let mut forms = vec![
            bytes.to_vec(),
            hex.to_uppercase().into_bytes(),
            hex.into_bytes(),
            wide,
        ];
        forms.extend(base64(bytes));
        self.0.push((what.to_owned(), forms));
    }

    #[track_caller]
    pub fn search(&self, place: &str, text: &str) {
        self.search_all(place, &[(String::new(), text.as_bytes().to_vec())]);
    }

    #[track_caller]
    pub fn search_all(&self, place: &str, readable: &[Readable]) {
        assert!(!readable.is_empty(), "nothing to search: {place}");
        for (name, bytes) in readable {
            for (what, forms) in &self.0 {
                let found = forms.iter().find(|form| contains(bytes, form));
                assert!(found.is_none(), "{what} is in {place} ({name})");
            }
        }
    }
}

/// What base64 makes of these bytes at each of the three places where they can begin, without the ends that depend on
/// what stands beside them. The secrets here are made of what both alphabets write alike.
fn base64(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..3).map(move |skip| {
        let whole = bytes[skip..].chunks_exact(3);
        whole
            .flat_map(|three| {
                let bits = three
                    .iter()
                    .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
                [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift & 63) as usize])
            })
            .collect()
    })
}

fn contains(bytes: &[u8], form: &[u8]) -> bool {
    // The first byte is looked for by itself, since whole databases are searched.
    let mut rest = bytes;
    while let Some(place) = rest.iter().position(|byte| *byte == form[0]) {
        rest = &rest[place..];
        if rest.starts_with(form) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[test]
fn a_canary_is_found_in_every_form() {
    let mut canaries = Canaries::default();
    canaries.keep("it", "canary-0123456789abcdef");
    for song in [
        "..canary-0123456789abcdef..",
        "63616e6172792d30313233343536373839616263646566",
        "xx Y2FuYXJ5LTAxMjM0NTY3ODlhYmNkZWY=",
        // With one and with two bytes before it.
        "LmNhbmFyeS0wMTIzNDU2Nzg5YWJjZGVm",
        "Li5jYW5hcnktMDEyMzQ1Njc4OWFiY2RlZg==",
    ] {
        let searched = std::panic::catch_unwind(|| canaries.search("a song", song));
        assert!(searched.is_err(), "{song}");
    }
    canaries.search("silence", "canary-0123456789");
}
