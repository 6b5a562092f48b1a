//! What lies on the disk: the data directory, the key, certificates, and how much room is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use berth_app::vault::Vault;
use berth_server::config::{Config, Database};
use rustix::fs::{Access, access, statvfs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Finding;
use crate::installation;

const GIB: u64 = 1 << 30;
const SPACE_LOW: u64 = GIB;
const SPACE_OUT: u64 = 100 << 20;

pub fn data_directory(config: &Config) -> Vec<Finding> {
    const SUBJECT: &str = "data directory";
    let folder = &config.data_dir;
    let shown = folder.display();
    let Ok(found) = fs::metadata(folder) else {
        let found = format!("{shown} does not exist");
        return vec![Finding::warn(
            SUBJECT,
            found,
            "`berth serve` makes it; or correct data_dir",
        )];
    };
    if !found.is_dir() {
        let found = format!("{shown} is not a directory");
        return vec![Finding::fail(SUBJECT, found, "correct data_dir")];
    }
    if access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let found = format!("this user may not write in {shown}");
        return vec![Finding::fail(
            SUBJECT,
            found,
            "run this as the user that runs the server, or change the owner",
        )];
    }
    vec![match others_may(folder) {
        true => Finding::warn(
            SUBJECT,
            format!("others can look into {shown}"),
            format!("run: chmod 700 {shown}"),
        ),
        false => Finding::ok(SUBJECT, format!("{shown} is there and private")),
    }]
}

pub fn disk_space(config: &Config) -> Vec<Finding> {
    let Some(free) = statvfs(&config.data_dir)
        .ok()
        .map(|disk| disk.f_bavail * disk.f_frsize)
    else {
        return Vec::new();
    };
    vec![disk_finding(free, &config.data_dir.display().to_string())]
}

/// What so much free room in a place means.
pub fn disk_finding(free: u64, place: &str) -> Finding {
    const SUBJECT: &str = "disk space";
    let found = format!("{:.1} GiB are free in {place}", free as f64 / GIB as f64);
    if free < SPACE_OUT {
        Finding::fail(
            SUBJECT,
            found,
            "make room: a full disk refuses every booking",
        )
    } else if free < SPACE_LOW {
        Finding::warn(SUBJECT, found, "make room before it is full")
    } else {
        Finding::ok(SUBJECT, found)
    }
}

pub fn secret_key(config: &Config) -> Vec<Finding> {
    const SUBJECT: &str = "secret key";
    let file = &config.secret_key_file;
    let shown = file.display();
    if !file.exists() {
        let has_data = matches!(&config.database, Database::Sqlite(path) if path.exists());
        return vec![if has_data {
            let advice = "restore it from its copy: without it the secrets in the database cannot be read; \
                          a new one is made at the next start if none are kept";
            Finding::fail(
                SUBJECT,
                format!("{shown} is missing, but there is a database"),
                advice,
            )
        } else {
            Finding::ok(SUBJECT, format!("{shown} is made on the first start"))
        }];
    }
    vec![match Vault::open_or_create(file) {
        Ok(_) => Finding::ok(SUBJECT, format!("{shown} is there, private and readable")),
        Err(error) => Finding::fail(
            SUBJECT,
            error.to_string(),
            "put it right, or correct secret_key_file",
        ),
    }]
}

pub fn tls(config: &Config) -> Vec<Finding> {
    const SUBJECT: &str = "TLS";
    let Some((certificate, key)) = config.tls() else {
        let public = config.public_url.as_ref();
        let plain = !config.listen.ip().is_loopback()
            && !public.is_some_and(|url| url.as_str().starts_with("https://"));
        return if plain {
            let found = format!(
                "{} is reached from other machines without encryption",
                config.listen
            );
            let advice = "set tls_certificate and tls_key, or put a proxy with TLS in front and set public_url";
            vec![Finding::warn(SUBJECT, found, advice)]
        } else {
            Vec::new()
        };
    };
    let mut findings = vec![match certificate_fits(certificate, key) {
        Ok(()) => Finding::ok(SUBJECT, "certificate and key belong together"),
        Err(error) => Finding::fail(SUBJECT, error, "correct tls_certificate and tls_key"),
    }];
    if key.exists() && others_may(key) {
        let shown = key.display();
        let found = format!("others can read the private key {shown}");
        findings.push(Finding::warn(
            SUBJECT,
            found,
            format!("run: chmod 600 {shown}"),
        ));
    }
    findings
}

/// Whether the files hold a certificate and its own key, in words if not.
fn certificate_fits(certificate: &Path, key: &Path) -> Result<(), String> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot read {}: {error}", certificate.display()))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("cannot read {}: {error}", key.display()))?;
    rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map(drop)
        .map_err(|error| format!("certificate and key cannot be used together: {error}"))
}

/// Whether a server holds the database now. Taking the lock for an instant is how to know.
pub fn is_locked(config: &Config) -> bool {
    let Database::Sqlite(database) = &config.database else {
        return false;
    };
    installation::lock_file(database).exists() && installation::lock(config).is_err()
}

fn others_may(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Level;
    use std::collections::BTreeMap;

    fn config(folder: &Path) -> Config {
        let flags = BTreeMap::from([("data_dir", folder.display().to_string())]);
        Config::layer(None, std::iter::empty(), flags)
            .unwrap()
            .config
    }

    #[test]
    fn open_doors_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let mode =
            |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        assert_eq!(data_directory(&config)[0].level, Level::Warn);
        mode(0o700);
        assert_eq!(data_directory(&config)[0].level, Level::Ok);
        fs::write(&config.secret_key_file, "ab".repeat(32)).unwrap();
        fs::set_permissions(&config.secret_key_file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(secret_key(&config)[0].level, Level::Fail);
    }

    #[test]
    fn a_key_that_is_gone_is_worse_than_one_not_made_yet() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        assert_eq!(secret_key(&config)[0].level, Level::Ok);
        fs::write(folder.path().join("berth.sqlite"), "").unwrap();
        assert_eq!(secret_key(&config)[0].level, Level::Fail);
        assert!(!config.secret_key_file.exists(), "looking makes nothing");
    }

    #[test]
    fn a_running_server_is_noticed_by_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        assert!(!is_locked(&config));
        let held = installation::lock(&config).unwrap();
        assert!(is_locked(&config));
        drop(held);
        assert!(!is_locked(&config));
    }
}
