//! The channel between a run's supervisor and the first process of its sandbox: one socket pair, one message per
//! packet.
//!
//! The supervisor may be root and the other end never is. So the supervisor limits the length of each packet and parses
//! it as hostile input. The kernel names the sender of each packet, and descriptors travel only towards the sandbox.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair, sockopt,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// A longer packet is refused.
const BYTES_MAX: usize = 4096;
/// Maximum number of descriptors in a message.
const DESCRIPTORS_MAX: usize = 1;

/// Messages from the supervisor. `Start`, `Visitor`, `Hub` and `Fork` carry a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToSandbox {
    /// The network exists; the process may turn into the sandbox.
    Go,
    /// The run's spec, which the sandbox reads once.
    Start,
    Stop,
    Checkpoint,
    /// The connection of a visitor whom the relay admitted.
    Visitor,
    /// A connection to the server's hub socket.
    Hub,
    /// Too many connections to the hub are open.
    HubRefused,
    /// A connection to a fork of the fork server.
    Fork,
    NoFork,
}

/// Messages from the sandbox. None carries a descriptor: the kernel closes any that the sandbox sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToKeeper {
    /// The network namespace exists.
    Ready,
    /// The sandbox exists, and its first process has the run's spec.
    Started,
    Hub,
    Fork,
    Ended(Fate),
}

/// How the app ended, as the first process in its sandbox saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Exited(i32),
    Signalled(i32),
    CouldNotStart(String),
}

/// A message with its descriptor and its sender.
#[derive(Debug)]
pub struct Received<T> {
    pub message: T,
    pub descriptor: Option<OwnedFd>,
    /// The sender's process id in this process's namespace. Only the supervisor's end asks the kernel for it.
    pub sender: Option<i32>,
}

/// Creates both ends: the supervisor's, and the sandbox's.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (keeper, sandbox) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_passcred(&keeper, true)?;
    Ok((keeper, sandbox))
}

/// Sends one message. Blocks if `end` is in blocking mode.
pub fn send(
    end: impl AsFd,
    message: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_slice();
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(
        end,
        &[IoSlice::new(&bytes)],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives one message; `None` when the other end is gone.
pub fn receive<T: DeserializeOwned>(end: impl AsFd) -> io::Result<Option<Received<T>>> {
    let mut bytes = [0; BYTES_MAX];
    let mut space =
        [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX), ScmCredentials(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let got = recvmsg(end, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let (mut descriptor, mut sender) = (None, None);
    for message in beside.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(mut handed) => descriptor = handed.next(),
            RecvAncillaryMessage::ScmCredentials(from) => {
                sender = Some(from.pid.as_raw_nonzero().get());
            }
            _ => {}
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the message is too long",
        ));
    }
    Ok(Some(Received {
        message: serde_json::from_slice(&bytes[..got.bytes])?,
        descriptor,
        sender,
    }))
}

/// An end for a process with a tokio runtime. The type is tokio's for sockets that keep packets apart; every packet
/// goes through `send` and `receive` above.
#[derive(Debug)]
pub struct Channel(UnixDatagram);

impl Channel {
    pub fn new(end: OwnedFd) -> io::Result<Channel> {
        let end = std::os::unix::net::UnixDatagram::from(end);
        end.set_nonblocking(true)?;
        Ok(Channel(UnixDatagram::from_std(end)?))
    }

    pub async fn send(
        &self,
        message: &impl Serialize,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let send = || send(&self.0, message, descriptor);
        self.0.async_io(Interest::WRITABLE, send).await
    }

    pub async fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<Received<T>>> {
        let receive = || receive(&self.0);
        self.0.async_io(Interest::READABLE, receive).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_whole_with_its_descriptor_and_its_sender() {
        let (keeper, sandbox) = pair().unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        send(&keeper, &ToSandbox::Visitor, Some(one.as_fd())).unwrap();
        send(&keeper, &ToSandbox::Stop, None).unwrap();
        let first: Received<ToSandbox> = receive(&sandbox).unwrap().unwrap();
        assert_eq!(first.message, ToSandbox::Visitor);
        assert!(first.descriptor.is_some());
        let second: Received<ToSandbox> = receive(&sandbox).unwrap().unwrap();
        assert_eq!(second.message, ToSandbox::Stop);
        send(&sandbox, &ToKeeper::Hub, None).unwrap();
        let asked: Received<ToKeeper> = receive(&keeper).unwrap().unwrap();
        assert_eq!(asked.sender, Some(std::process::id().cast_signed()));
        drop(keeper);
        assert!(receive::<ToSandbox>(&sandbox).unwrap().is_none());
    }

    #[test]
    fn a_packet_that_is_too_long_or_no_message_is_an_error_and_the_next_is_read() {
        let (keeper, sandbox) = pair().unwrap();
        send(&sandbox, &"x".repeat(BYTES_MAX), None).unwrap();
        send(&sandbox, &"nonsense", None).unwrap();
        send(&sandbox, &ToKeeper::Ended(Fate::Exited(0)), None).unwrap();
        assert!(receive::<ToKeeper>(&keeper).is_err());
        assert!(receive::<ToKeeper>(&keeper).is_err());
        let fate = receive::<ToKeeper>(&keeper).unwrap().unwrap();
        assert_eq!(fate.message, ToKeeper::Ended(Fate::Exited(0)));
    }
}
