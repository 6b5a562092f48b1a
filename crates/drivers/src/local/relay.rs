//! Admits visitors to a run. The supervisor listens on a socket that no run sees. It passes a connection that begins
//! with the run's key to the first process of the sandbox. The run never sees the key.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use tokio::net::UnixListener;
use tokio::sync::Semaphore;

use super::attempts::Attempts;
use super::control::{Channel, ToSandbox};
use super::folder::Folder;
use crate::backend::AttemptKind;
use crate::door::{Key, admit};

/// Maximum number of connections that have not sent their key yet.
const AT_ONCE: usize = 64;

#[derive(Debug)]
pub struct Relay {
    listener: UnixListener,
    key: Key,
}

impl Relay {
    pub fn open(folder: &Folder) -> io::Result<Relay> {
        let socket = folder.socket();
        // A sandbox that did not start may have left a socket, in a folder that no run sees.
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        Ok(Relay {
            listener,
            key: folder.key()?,
        })
    }

    pub async fn let_in(self, channel: Arc<Channel>, attempts: Arc<Attempts>) {
        let key = Arc::new(self.key);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        // The semaphore is never closed.
        while let Ok(place) = places.clone().acquire_owned().await {
            let mut visitor = match self.listener.accept().await {
                Ok((visitor, _)) => visitor,
                // No descriptor is free now, but one will be.
                Err(_) => {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    continue;
                }
            };
            let (channel, attempts, key) = (channel.clone(), attempts.clone(), key.clone());
            tokio::spawn(async move {
                let _place = place;
                match admit(&mut visitor, &key).await {
                    Ok(()) => {
                        let passed = channel.send(&ToSandbox::Visitor, Some(visitor.as_fd()));
                        passed.await.ok();
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        attempts.note(AttemptKind::WrongKey);
                    }
                    Err(_) => {}
                }
            });
        }
    }
}
