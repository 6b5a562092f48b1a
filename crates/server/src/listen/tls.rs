//! The server's own TLS, when it is given a certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why the certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read the certificate {}; is it a PEM file that this user may read?", file.display())]
    Certificate {
        file: PathBuf,
        #[source]
        error: pem::Error,
    },
    #[error("there is no certificate in {}; it must hold the chain in PEM, the server's own first", file.display())]
    NoCertificate { file: PathBuf },
    #[error("cannot read the private key {}; is it a PEM file that this user may read?", file.display())]
    Key {
        file: PathBuf,
        #[source]
        error: pem::Error,
    },
    #[error("the certificate {} and the key {} cannot be used together", certificate.display(), key.display())]
    Unusable {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        error: rustls::Error,
    },
}

/// Reads the certificate chain and the key. Both versions of HTTP are offered.
pub fn load(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |error| TlsError::Certificate {
        file: certificate.to_owned(),
        error,
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable)?;
    if chain.is_empty() {
        let file = certificate.to_owned();
        return Err(TlsError::NoCertificate { file });
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::Key {
        file: key.to_owned(),
        error,
    })?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config
                .with_no_client_auth()
                .with_single_cert(chain, private)
        });
    let mut config = config.map_err(|error| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        error,
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    fn refusal(certificate: &str, key: &str) -> TlsError {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (certificate, key) = (write("chain.pem", certificate), write("key.pem", key));
        load(&certificate, &key).err().expect("a refusal")
    }

    #[test]
    fn wrong_files_are_named_with_what_is_wrong() {
        let missing = load(Path::new("no/such.pem"), Path::new("no/key.pem"));
        let missing = missing.err().expect("a refusal");
        assert!(missing.to_string().contains("no/such.pem"), "{missing}");
        assert!(missing.source().is_some());
        let empty = refusal("not a certificate", "not a key");
        assert!(matches!(empty, TlsError::NoCertificate { .. }), "{empty}");
    }
}
