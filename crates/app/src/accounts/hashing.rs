//! Argon2, a few hashes at a time, in memory that is allocated once for each.
//!
//! A hash takes a core and 19 MiB for a moment. Allocators keep such blocks for each thread that had one, so a burst of
//! sign-ins would leave hundreds of MiB behind. So this module keeps the blocks itself, as many as hashes run at once.

use std::sync::{Arc, Mutex, PoisonError};

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::clock::random;
use crate::error::{Error, Result};

/// How many passwords are hashed at once.
const AT_ONCE: usize = 2;

#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    turns: Arc<Semaphore>,
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            memory: Arc::default(),
        }
    }
}

impl Hasher {
    pub async fn hash(&self, password: SecretString) -> Result<String> {
        self.in_turn(move |memory| {
            let salt: [u8; 16] = random();
            let (algorithm, version) = (Algorithm::default(), Version::default());
            let params = Params::default();
            let mut out = [0; Params::DEFAULT_OUTPUT_LEN];
            fill(
                algorithm, version, &params, &password, &salt, &mut out, memory,
            )?;
            let hash = PasswordHash {
                algorithm: algorithm.ident(),
                version: Some(version.into()),
                params: ParamsString::try_from(&params).map_err(broken)?,
                salt: Some(Salt::new(&salt).map_err(broken)?),
                hash: Some(Output::new(&out).map_err(broken)?),
            };
            Ok(hash.to_string())
        })
        .await
    }

    /// Whether this is the password of the hash.
    pub async fn verify(&self, password: SecretString, hash: String) -> Result<bool> {
        self.in_turn(move |memory| {
            let hash = PasswordHash::new(&hash).map_err(broken)?;
            let algorithm = Algorithm::try_from(hash.algorithm.as_str()).map_err(broken)?;
            let version = hash
                .version
                .map(Version::try_from)
                .transpose()
                .map_err(broken)?;
            let params = Params::try_from(&hash).map_err(broken)?;
            let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
                return Err(broken("it has no salt, or no output"));
            };
            let mut out = vec![0; expected.len()];
            let version = version.unwrap_or_default();
            fill(
                algorithm, version, &params, &password, salt, &mut out, memory,
            )?;
            Ok(out.ct_eq(expected.as_bytes()).into())
        })
        .await
    }

    /// The permit belongs to the work and not to the request: the request may be dropped before the work ends.
    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Vec<Block>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(|_| Error::Internal("the server is stopping".into()))?;
        let memory = self.memory.clone();
        let done = tokio::task::spawn_blocking(move || {
            let kept = || memory.lock().unwrap_or_else(PoisonError::into_inner);
            let mut blocks = kept().pop().unwrap_or_default();
            let done = work(&mut blocks);
            kept().push(blocks);
            drop(turn);
            done
        });
        done.await
            .map_err(|error| Error::Internal(error.to_string()))?
    }
}

fn fill(
    algorithm: Algorithm,
    version: Version,
    params: &Params,
    password: &SecretString,
    salt: &[u8],
    out: &mut [u8],
    memory: &mut Vec<Block>,
) -> Result<()> {
    let count = params.block_count();
    if memory.len() < count {
        memory.resize(count, Block::new());
    }
    let blocks = memory.get_mut(..count).unwrap_or_default();
    Argon2::new(algorithm, version, params.clone())
        .hash_password_into_with_memory(password.expose_secret().as_bytes(), salt, out, blocks)
        .map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("a password could not be hashed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::{PasswordHasher, PasswordVerifier};

    #[tokio::test]
    async fn it_agrees_with_the_library_both_ways() {
        let hasher = Hasher::default();
        let right = || SecretString::from("a quiet harbour");
        let ours = hasher.hash(right()).await.unwrap();
        let read = PasswordHash::new(&ours).unwrap();
        let library = Argon2::default();
        assert!(library.verify_password(b"a quiet harbour", &read).is_ok());
        assert!(library.verify_password(b"a loud harbour", &read).is_err());
        let theirs: PasswordHash = library.hash_password(b"a quiet harbour").unwrap();
        assert!(hasher.verify(right(), theirs.to_string()).await.unwrap());
        let wrong = SecretString::from("a loud harbour");
        assert!(!hasher.verify(wrong, theirs.to_string()).await.unwrap());
        assert!(hasher.verify(right(), "no hash".into()).await.is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_crowd_leaves_no_more_memory_than_two_hashes_need() {
        let hasher = Hasher::default();
        let mut crowd = tokio::task::JoinSet::new();
        for _ in 0..55 {
            let hasher = hasher.clone();
            crowd.spawn(async move { hasher.hash(SecretString::from("a quiet harbour")).await });
        }
        for hash in crowd.join_all().await {
            hash.unwrap();
        }
        let memory = hasher.memory.lock().unwrap();
        let blocks: usize = memory.iter().map(Vec::len).sum();
        assert!(memory.len() <= AT_ONCE);
        assert!(blocks <= AT_ONCE * Params::default().block_count());
    }
}
