//! The keys that encrypt the secret part of a run's record.
//!
//! The server's key encrypts no record itself. Each run has a key that is derived from it, and a supervisor gets only
//! the key of its own run. So a copy of the record from the disk reveals nothing, and a supervisor can open no other
//! record.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use berth_model::RunId;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// The server's key, from which it derives the key of each run.
#[derive(Clone)]
pub struct RecordKey(Zeroizing<[u8; KEY_BYTES]>);

/// The key for the record of one run.
pub struct RunRecordKey(Zeroizing<[u8; KEY_BYTES]>);

impl RecordKey {
    pub fn new(key: Zeroizing<[u8; KEY_BYTES]>) -> RecordKey {
        RecordKey(key)
    }

    /// A random key, for runs that end before the program that starts them does.
    pub fn generate() -> io::Result<RecordKey> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(key.as_mut()).map_err(io::Error::other)?;
        Ok(RecordKey(key))
    }

    pub fn of(&self, run: RunId) -> RunRecordKey {
        let mut hash = Sha256::new();
        hash.update(b"berth record of a run\n");
        hash.update(*self.0);
        hash.update(run.0.as_bytes());
        RunRecordKey(Zeroizing::new(hash.finalize().into()))
    }
}

impl RunRecordKey {
    /// A pipe from which a supervisor reads its key. The key fits into the pipe, so the writer does not wait.
    pub fn to_pipe(&self) -> io::Result<OwnedFd> {
        use std::io::Write;
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(&*self.0)?;
        Ok(reader.into())
    }

    /// Reads the key that another process wrote with [`Self::to_pipe`]; `None` if there is no key.
    pub fn read(mut from: impl Read) -> Option<RunRecordKey> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        from.read_exact(key.as_mut()).ok()?;
        Some(RunRecordKey(key))
    }

    pub fn seal(&self, plain: &[u8]) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), plain);
        let sealed = sealed.map_err(|_| io::Error::other("the record could not be sealed"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    pub fn open(&self, sealed: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
        let opened = sealed.split_first_chunk::<NONCE_BYTES>();
        let opened = opened.and_then(|(nonce, sealed)| {
            let plain = self.cipher().decrypt(&XNonce::from(*nonce), sealed);
            plain.ok().map(Zeroizing::new)
        });
        opened.ok_or_else(|| {
            let message =
                "the record does not open with the key of this server; was the key file replaced?";
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

impl std::fmt::Debug for RecordKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RecordKey(..)")
    }
}

impl std::fmt::Debug for RunRecordKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RunRecordKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_opens_with_the_key_of_its_run_alone() {
        let server = RecordKey::new(Zeroizing::new([7; KEY_BYTES]));
        let [one, other] = [1, 2].map(|run| server.of(RunId(uuid::Uuid::from_u128(run))));
        let sealed = one.seal(b"canary").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"canary"));
        assert_ne!(
            sealed,
            one.seal(b"canary").unwrap(),
            "a fresh nonce each time"
        );
        let told = RunRecordKey::read(std::fs::File::from(one.to_pipe().unwrap()));
        assert_eq!(**told.unwrap().open(&sealed).unwrap(), *b"canary");
        assert!(other.open(&sealed).is_err());
        assert!(one.open(&sealed[..NONCE_BYTES]).is_err());
        assert!(one.open(b"").is_err());
        assert!(RunRecordKey::read(io::empty()).is_none());
    }
}
