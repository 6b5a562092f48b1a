//! Secrets at rest: sealed with a key from the configuration, and bound to the row they belong to.

use std::collections::BTreeMap;
use std::path::Path;

use berth_model::parameter::Hidden;
use berth_model::{Name, ReservationId, SecretId, SiteId, WorkloadId};
use berth_store::secrets::SealedSecret;
use berth_store::variables::SealedVariables;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::clock::random;

const NONCE_LEN: usize = 24;
/// Keeps stored secrets and handed-out words apart: neither can be used as the other.
const HANDED_OUT: &[u8] = b"handed out";

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("cannot read the secret key `{path}`: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("`{path}` is not a secret key: it must hold 64 hexadecimal digits and nothing else")]
    Malformed { path: String },
    #[error("`{path}` can be read by others; run: chmod 600 {path}")]
    Readable { path: String },
    #[error("a stored secret does not open with this key; was the key file replaced?")]
    Sealed,
}

/// The key, and an id of it that is stored with each sealed secret.
pub struct Vault {
    cipher: XChaCha20Poly1305,
    key_id: String,
    record_key: Zeroizing<[u8; 32]>,
    fingerprint_key: Zeroizing<[u8; 32]>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

impl Vault {
    pub fn from_key(key: &[u8; 32]) -> Self {
        let digest = Sha256::digest([b"berth key id".as_slice(), key].concat());
        let key_id = digest[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let derived =
            |purpose: &[u8]| Zeroizing::new(Sha256::digest([purpose, key].concat()).into());
        Self {
            cipher: XChaCha20Poly1305::new(key.into()),
            key_id,
            record_key: derived(b"berth run records"),
            fingerprint_key: derived(b"berth request fingerprints"),
        }
    }

    /// Reads the key file, or creates one that only its owner can read.
    pub fn open_or_create(path: &Path) -> Result<Self, VaultError> {
        use std::io::Write;
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let shown = || path.display().to_string();
        let made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        if let Ok(mut file) = made {
            let key: Zeroizing<String> = Zeroizing::new(
                random::<32>()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            );
            file.write_all(key.as_bytes())
                .and_then(|()| file.sync_all())
                .map_err(|source| VaultError::Read {
                    path: shown(),
                    source,
                })?;
        }
        let read = |source| VaultError::Read {
            path: shown(),
            source,
        };
        if std::fs::metadata(path).map_err(read)?.permissions().mode() & 0o077 != 0 {
            return Err(VaultError::Readable { path: shown() });
        }
        let text = Zeroizing::new(std::fs::read_to_string(path).map_err(read)?);
        let digits = text.trim().as_bytes();
        let mut key = Zeroizing::new([0u8; 32]);
        let pairs = digits.chunks_exact(2).map(|pair| {
            std::str::from_utf8(pair)
                .ok()
                .and_then(|p| u8::from_str_radix(p, 16).ok())
        });
        let bytes: Option<Vec<u8>> = if digits.len() == 64 {
            pairs.collect()
        } else {
            None
        };
        key.copy_from_slice(&Zeroizing::new(
            bytes.ok_or_else(|| VaultError::Malformed { path: shown() })?,
        ));
        Ok(Self::from_key(&key))
    }

    /// A key from which the keys for the records of runs are derived. These records are outside the database.
    pub fn record_key(&self) -> &Zeroizing<[u8; 32]> {
        &self.record_key
    }

    /// A keyed hash of these parts. A request may hold passwords, and with a plain hash a reader of the database could
    /// guess them. Lengths keep the parts apart.
    pub(crate) fn fingerprint(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*self.fingerprint_key);
        let mut mac = mac.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Seals a text that is handed out and comes back.
    pub(crate) fn seal_word(&self, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
        self.encrypt(HANDED_OUT, plain)
    }

    /// The text that was sealed by [`Vault::seal_word`]. None if it was not, or if it was changed.
    pub(crate) fn open_word(&self, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.decrypt(HANDED_OUT, sealed).ok()
    }

    pub(crate) fn seal(
        &self,
        place: SecretPlace<'_>,
        value: &Hidden,
    ) -> Result<SealedSecret, VaultError> {
        let sealed = self.encrypt(&place.bytes(), value.reveal().as_bytes())?;
        Ok(SealedSecret {
            id: place.id,
            site: place.site,
            reservation: place.reservation,
            type_name: place.type_name.clone(),
            parameter: place.parameter.clone(),
            key_id: self.key_id.clone(),
            sealed,
        })
    }

    /// Opens a secret for the fulfilment of the reservation. No API request leads here.
    pub fn open(&self, secret: &SealedSecret) -> Result<Hidden, VaultError> {
        let place = SecretPlace {
            id: secret.id,
            site: secret.site,
            reservation: secret.reservation,
            type_name: &secret.type_name,
            parameter: &secret.parameter,
        };
        let plain = self.decrypt(&place.bytes(), &secret.sealed)?;
        let text = std::str::from_utf8(&plain).map_err(|_| VaultError::Sealed)?;
        Ok(Hidden::new(text.to_owned()))
    }

    /// Seals the environment variables of a workload, bound to it.
    pub(crate) fn seal_variables(
        &self,
        of: WorkloadId,
        variables: &Variables,
    ) -> Result<SealedVariables, VaultError> {
        let plain = serde_json::to_vec(variables).map_err(|_| VaultError::Sealed)?;
        Ok(SealedVariables {
            key_id: self.key_id.clone(),
            sealed: self.encrypt(&place_of(of), &Zeroizing::new(plain))?,
        })
    }

    pub(crate) fn open_variables(
        &self,
        of: WorkloadId,
        variables: &SealedVariables,
    ) -> Result<Variables, VaultError> {
        let plain = self.decrypt(&place_of(of), &variables.sealed)?;
        serde_json::from_slice(&plain).map_err(|_| VaultError::Sealed)
    }

    /// A fresh nonce, followed by the text sealed together with `place`.
    fn encrypt(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, VaultError> {
        let nonce: [u8; NONCE_LEN] = random();
        let payload = Payload {
            msg: plain,
            aad: place,
        };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| VaultError::Sealed)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    fn decrypt(&self, place: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (nonce, sealed) = sealed
            .split_at_checked(NONCE_LEN)
            .ok_or(VaultError::Sealed)?;
        let nonce: [u8; NONCE_LEN] = nonce.try_into().map_err(|_| VaultError::Sealed)?;
        let payload = Payload {
            msg: sealed,
            aad: place,
        };
        let plain = self.cipher.decrypt(&XNonce::from(nonce), payload);
        plain.map(Zeroizing::new).map_err(|_| VaultError::Sealed)
    }
}

/// The variables of a workload, by name.
pub(crate) type Variables = BTreeMap<String, String>;

fn place_of(of: WorkloadId) -> Vec<u8> {
    format!("variables\n{of}").into()
}

/// The place of a secret. It is sealed together with this, so a row copied elsewhere does not open.
pub(crate) struct SecretPlace<'a> {
    pub id: SecretId,
    pub site: SiteId,
    pub reservation: ReservationId,
    pub type_name: &'a Name,
    pub parameter: &'a Name,
}

impl SecretPlace<'_> {
    fn bytes(&self) -> Vec<u8> {
        format!(
            "secret\n{}\n{}\n{}\n{}\n{}",
            self.id, self.site, self.reservation, self.type_name, self.parameter
        )
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn sealed(vault: &Vault) -> SealedSecret {
        let name: Name = "password".parse().unwrap();
        let place = SecretPlace {
            id: SecretId(Uuid::from_u128(1)),
            site: SiteId(Uuid::from_u128(2)),
            reservation: ReservationId(Uuid::from_u128(3)),
            type_name: &name,
            parameter: &name,
        };
        vault.seal(place, &Hidden::new("canary".into())).unwrap()
    }

    #[test]
    fn a_secret_opens_only_where_it_belongs_and_with_its_key() {
        let vault = Vault::from_key(&[7; 32]);
        let secret = sealed(&vault);
        assert_eq!(vault.open(&secret).unwrap().reveal(), "canary");
        assert!(!secret.sealed.windows(6).any(|window| window == b"canary"));
        assert_ne!(
            secret.sealed,
            sealed(&vault).sealed,
            "a fresh nonce each time"
        );
        let elsewhere = SealedSecret {
            reservation: ReservationId(Uuid::from_u128(4)),
            ..secret.clone()
        };
        assert!(vault.open(&elsewhere).is_err());
        assert!(Vault::from_key(&[8; 32]).open(&secret).is_err());
    }

    #[test]
    fn variables_open_only_for_their_workload_and_with_their_key() {
        let vault = Vault::from_key(&[7; 32]);
        let [one, other] = [1, 2].map(|id| WorkloadId(Uuid::from_u128(id)));
        let variables = Variables::from([("TOKEN".to_owned(), "canary".to_owned())]);
        let sealed = vault.seal_variables(one, &variables).unwrap();
        for word in [b"canary".as_slice(), b"TOKEN"] {
            assert!(!sealed.sealed.windows(word.len()).any(|part| part == word));
        }
        assert_eq!(vault.open_variables(one, &sealed).unwrap(), variables);
        assert!(vault.open_variables(other, &sealed).is_err());
        let changed = Vault::from_key(&[8; 32]);
        assert!(changed.open_variables(one, &sealed).is_err());
        assert_ne!(vault.record_key(), changed.record_key());
    }

    #[test]
    fn a_fingerprint_tells_parts_and_keys_apart() {
        let vault = Vault::from_key(&[7; 32]);
        let one = vault.fingerprint(&[b"POST", b"/a", b"{}"]);
        assert_eq!(vault.fingerprint(&[b"POST", b"/a", b"{}"]), one);
        for other in [
            vault.fingerprint(&[b"PUT", b"/a", b"{}"]),
            vault.fingerprint(&[b"POST", b"/b", b"{}"]),
            vault.fingerprint(&[b"POST", b"/a{", b"}"]),
            Vault::from_key(&[8; 32]).fingerprint(&[b"POST", b"/a", b"{}"]),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn the_key_file_is_made_once_and_kept_private() {
        let dir =
            std::env::temp_dir().join(format!("berth-vault-{:x}", u64::from_be_bytes(random())));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("key");
        let first = Vault::open_or_create(&path).unwrap();
        let secret = sealed(&first);
        assert_eq!(
            Vault::open_or_create(&path)
                .unwrap()
                .open(&secret)
                .unwrap()
                .reveal(),
            "canary"
        );
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            Vault::open_or_create(&path),
            Err(VaultError::Readable { .. })
        ));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(
            Vault::open_or_create(&path),
            Err(VaultError::Malformed { .. })
        ));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
