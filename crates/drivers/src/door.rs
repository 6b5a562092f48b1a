//! The endpoint of a run's own web server: a socket of the run's supervisor. It admits only a connection that begins
//! with the run's key. The server also asks here, as Berth and not as a visitor, whether the app answers and what its
//! kernels do.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONNECTION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustix::fs::{FileType, Mode, OFlags};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::turns::Turns;

/// The socket on which a run's supervisor waits for visitors, and the key that it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    pub socket: PathBuf,
    pub key: Key,
    /// Whether the app checks a token of its own.
    pub has_app_token: bool,
}

impl Door {
    /// The `Authorization` header of a request to the app, if the app checks one.
    pub fn authorization(&self) -> Option<String> {
        self.has_app_token
            .then(|| format!("Bearer {}", self.key.app_token()))
    }
}

/// A run's own secret. The server and the run's supervisor know it; the run never does.
#[derive(Clone)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    pub const BYTES: usize = 32;

    pub fn generate() -> io::Result<Key> {
        let mut bytes = [0; Key::BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Key(bytes))
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Key> {
        bytes.try_into().ok().map(Key)
    }

    /// The bytes for the key file, which only the server and the supervisor read.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The token of an app that checks its own. The key cannot be derived from it.
    pub fn app_token(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"berth app token\n");
        hash.update(self.0);
        let digest = hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Compares in constant time.
impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Key {}

impl std::fmt::Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Key(..)")
    }
}

/// How long the supervisor waits for the key of a connection.
const KEY_PATIENCE: Duration = Duration::from_secs(5);

/// Timeout for opening a socket, which is on a disk.
const OPENING: Duration = Duration::from_secs(2);
/// For each socket, only one call opens it at a time: a disk that hangs occupies one thread.
static OPENINGS: LazyLock<Turns<PathBuf>> = LazyLock::new(Turns::default);

/// Connects and sends the key. The socket must belong to this process's own user, and so must the process that listens
/// there. A link is not followed.
pub async fn connect(door: &Door) -> io::Result<UnixStream> {
    let path = door.socket.clone();
    let opened = OPENINGS.take(door.socket.clone(), OPENING, move |_| open_socket(&path));
    let late = || io::Error::new(io::ErrorKind::TimedOut, "the disk did not answer in time");
    let socket = opened.await.unwrap_or_else(|| Err(late()))?;
    let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
    let mut stream = UnixStream::connect(path).await?;
    if stream.peer_cred()?.uid() != own_user() {
        return Err(not_ours(&door.socket, "another user listens there"));
    }
    stream.write_all(door.key.bytes()).await?;
    Ok(stream)
}

fn open_socket(path: &Path) -> io::Result<rustix::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = rustix::fs::open(path, flags, Mode::empty())?;
    let about = rustix::fs::fstat(&socket)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::Socket {
        return Err(not_ours(path, "it is not a socket"));
    }
    if about.st_uid != own_user() {
        return Err(not_ours(path, "it belongs to another user"));
    }
    Ok(socket)
}

fn not_ours(path: &Path, why: &str) -> io::Error {
    let path = path.display();
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{path} is not a run's own socket: {why}"),
    )
}

fn own_user() -> u32 {
    nix::unistd::Uid::effective().as_raw()
}

/// The supervisor's side: admits a connection if its peer is this process's own user and sends the key first.
pub async fn admit(stream: &mut UnixStream, key: &Key) -> io::Result<()> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if stream.peer_cred()?.uid() != own_user() {
        return refused("the peer is another user");
    }
    let mut sent = [0; Key::BYTES];
    let read = tokio::time::timeout(KEY_PATIENCE, stream.read_exact(&mut sent));
    match read.await {
        Ok(Ok(_)) if Key(sent) == *key => Ok(()),
        Ok(Ok(_)) => refused("the key is wrong"),
        Ok(Err(error)) => Err(error),
        Err(late) => Err(io::Error::new(io::ErrorKind::TimedOut, late)),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether the requested page exists, here or behind a redirect.
    pub fn is_good(&self) -> bool {
        StatusCode::from_u16(self.status)
            .is_ok_and(|status| status.is_success() || status.is_redirection())
    }
}

/// Maximum size of an answer's body.
const BODY_MAX: usize = 1 << 20;

/// Requests a path, which must begin with a slash. Somebody else's program answers, so the answer is not trusted.
pub async fn ask(door: &Door, path: &str, patience: Duration) -> io::Result<Answer> {
    let asked = tokio::time::timeout(patience, exchange(door, path));
    match asked.await {
        Ok(answer) => answer,
        Err(late) => Err(io::Error::new(io::ErrorKind::TimedOut, late)),
    }
}

async fn exchange(door: &Door, path: &str) -> io::Result<Answer> {
    let stream = connect(door).await?;
    let talk = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = talk.map_err(io::Error::other)?;
    let mut request = Request::get(path)
        .header(HOST, "localhost")
        .header(CONNECTION, "close");
    if let Some(authorization) = door.authorization() {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = async {
        let response = sender.send_request(request).await;
        let (head, body) = response.map_err(io::Error::other)?.into_parts();
        let body = Limited::new(body, BODY_MAX).collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        Ok(Answer {
            status: head.status.as_u16(),
            body: body.to_vec(),
        })
    };
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = connection => {
            ended.map_err(io::Error::other)?;
            answer.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixListener;

    fn door(socket: &Path) -> Door {
        let key = Key::generate().unwrap();
        Door {
            socket: socket.to_owned(),
            key,
            has_app_token: false,
        }
    }

    #[tokio::test]
    async fn a_connection_with_the_key_is_let_in_and_one_without_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let door = door(&folder.path().join("app.sock"));
        let listener = UnixListener::bind(&door.socket).unwrap();
        let (stream, accepted) = tokio::join!(connect(&door), listener.accept());
        let (_stream, mut accepted) = (stream.unwrap(), accepted.unwrap().0);
        assert!(admit(&mut accepted, &door.key).await.is_ok());
        let other = Door {
            key: Key::generate().unwrap(),
            ..door.clone()
        };
        let (stream, accepted) = tokio::join!(connect(&other), listener.accept());
        let (_stream, mut accepted) = (stream.unwrap(), accepted.unwrap().0);
        let refused = admit(&mut accepted, &door.key).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert_ne!(door.key.app_token(), other.key.app_token());
        assert_eq!(format!("{door:?}").matches("Key(..)").count(), 1);
    }

    #[tokio::test]
    async fn nothing_but_a_socket_of_its_own_is_connected_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let real = folder.path().join("real.sock");
        let _listener = UnixListener::bind(&real).unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        assert!(connect(&door(&path)).await.is_err(), "a link");
        std::fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(connect(&door(&path)).await.is_err(), "a pipe");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(connect(&door(&path)).await.is_err(), "a directory");
        if nix::unistd::Uid::effective().is_root() {
            std::os::unix::fs::chown(&real, Some(200_000), None).unwrap();
            assert!(connect(&door(&real)).await.is_err(), "another user's");
        }
    }
}
