//! `lossy-fs BACKING MOUNTPOINT`: a disk that drops unsynced writes at a crash. See `lossy`.
//!
//! `SIGTERM` keeps everything; `SIGUSR1` and `kill -9` drop everything that was not synced.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Result, bail};
use berth_testkit::lossy::{Until, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let (backing, mountpoint, until) = match arguments.as_slice() {
        [backing, mountpoint] => (backing, mountpoint, Until::Signal),
        [flag, backing, mountpoint] if flag == "--until-stdin-closes" => {
            (backing, mountpoint, Until::SignalOrStdinCloses)
        }
        _ => bail!("usage: lossy-fs [--until-stdin-closes] BACKING MOUNTPOINT"),
    };
    serve(Path::new(backing), Path::new(mountpoint), until).await
}
