//! A real nginx with a configuration of its own, on loopback, which ends with the test.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Stdio;

use berth_testkit::process::{self, Signal, Tethered, User};
use berth_testkit::{tool, wait};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::certificate::Certificate;
use crate::support::SOON;

#[derive(Debug)]
pub struct Nginx {
    _process: Tethered,
    _folder: TempDir,
}

impl Nginx {
    /// Listens on `port` with TLS, and hands on to Berth what is below `path`: the few lines that an administrator
    /// writes, and none that only Berth would need.
    pub async fn start(port: u16, certificate: &Certificate, path: &str, berth: u16) -> Self {
        let folder = TempDir::new().expect("a directory");
        let here = folder.path().display().to_string();
        let config = format!(
            "daemon off;
             master_process off;
             pid {here}/pid;
             error_log {here}/error.log;
             events {{}}
             http {{
                 access_log off;
                 client_body_temp_path {here}/body;
                 proxy_temp_path {here}/proxy;
                 fastcgi_temp_path {here}/fastcgi;
                 uwsgi_temp_path {here}/uwsgi;
                 scgi_temp_path {here}/scgi;
                 server {{
                     listen 127.0.0.1:{port} ssl;
                     ssl_certificate {certificate};
                     ssl_certificate_key {key};
                     location {path}/ {{
                         proxy_pass http://127.0.0.1:{berth};
                         proxy_http_version 1.1;
                         proxy_set_header Connection \"\";
                         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                         proxy_set_header X-Forwarded-Host $http_host;
                         proxy_set_header X-Forwarded-Proto $scheme;
                     }}
                     location / {{ return 404; }}
                 }}
             }}",
            certificate = certificate.certificate_file().display(),
            key = certificate.key_file().display(),
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).expect("write the configuration");
        let mut command = process::command(
            tool::find("nginx").expect("nginx"),
            User::Same,
            Signal::Kill,
        );
        command.arg("-e").arg(folder.path().join("error.log"));
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file);
        command.stdin(Stdio::null());
        let mut process = process::spawn(command).expect("start nginx");
        wait::until("nginx to listen", SOON, async || {
            let ended = process.ended().expect("look at nginx");
            let log = fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
            assert!(ended.is_none(), "nginx ended: {log}");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .await
                .is_ok()
        })
        .await;
        Self {
            _process: process,
            _folder: folder,
        }
    }
}
