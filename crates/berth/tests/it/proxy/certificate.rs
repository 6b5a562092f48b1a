//! A certificate for 127.0.0.1, made for one test by `openssl`, which every machine with `ca-certificates` has.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use berth_testkit::tool;
use reqwest::ClientBuilder;
use tempfile::TempDir;

/// Signed by itself, and no authority for anything else.
const REQUEST: &str = "\
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = berth test
[extensions]
subjectAltName = IP:127.0.0.1
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
";

#[derive(Debug)]
pub struct Certificate {
    pub pem: Vec<u8>,
    folder: TempDir,
}

impl Certificate {
    pub fn make() -> Self {
        let folder = TempDir::new().expect("a directory");
        fs::write(folder.path().join("request"), REQUEST).expect("write the request");
        let made = Command::new(tool::find("openssl").expect("openssl"))
            .args(["req", "-x509", "-config", "request", "-days", "2", "-nodes"])
            .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-keyout", "key.pem", "-out", "certificate.pem"])
            .current_dir(folder.path())
            .output()
            .expect("run openssl");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let pem = fs::read(folder.path().join("certificate.pem")).expect("the certificate");
        Self { pem, folder }
    }

    pub fn certificate_file(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// A client that trusts this certificate and no other.
    pub fn trusting(&self) -> ClientBuilder {
        let trusted = reqwest::Certificate::from_pem(&self.pem).expect("a certificate");
        reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_only([trusted])
    }
}
