//! Authentication: passwords and sign-ins, API tokens, one-time links.

mod attempts;
mod hashing;
mod password;
mod sign_in;
mod token;

pub(crate) use hashing::Hasher;
pub use password::ResetLink;
pub use sign_in::{SessionToken, SignedIn};
pub use token::{NewToken, is_token};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::clock::random;

/// 256 random bits as text: the body of every sign-in, token and one-time link.
pub(crate) fn random_text() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(random::<32>())
}

/// Whether a text has the form that [`random_text`] makes.
pub(crate) fn is_random_text(text: &str) -> bool {
    text.len() == 43 && BASE64_URL_SAFE_NO_PAD.decode(text).is_ok()
}

/// The hash of such a text, for the database. The text has full entropy, so a plain fast hash is enough; only passwords
/// need argon2.
pub(crate) fn stored_hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
