//! Slow, silent and broken clients, and how a server stops.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::{Answer, PATIENCE, Running};

/// Waits until the server closes the connection, and says how long that took.
async fn closed(mut stream: TcpStream) -> Result<Duration> {
    let began = Instant::now();
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await?
        .ok();
    Ok(began.elapsed())
}

#[tokio::test]
async fn who_does_not_say_what_they_want_is_let_go() -> Result<()> {
    let server = Running::start("header_timeout_s = 1").await?;
    let silent = TcpStream::connect(server.address).await?;
    let mut slow = TcpStream::connect(server.address).await?;
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        .await?;
    let mut binary = TcpStream::connect(server.address).await?;
    binary.write_all(&[0x16, 3, 1, 0, 0xff]).await?;
    for stream in [silent, slow, binary] {
        assert!(closed(stream).await? < Duration::from_secs(5));
    }
    assert_eq!(server.get("/healthz").await?.status, 200);
    server.stop().await
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() -> Result<()> {
    let server = Running::start("request_timeout_s = 2").await?;
    let mut stream = TcpStream::connect(server.address).await?;
    let head = "POST /api/v1/sign-in HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await?;
    let answer = Answer::read(&mut stream).await?;
    answer.expect_problem(408, "request.timeout")?;
    server.stop().await
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_their_turn() -> Result<()> {
    let server = Running::start("connections_max = 1\nheader_timeout_s = 600").await?;
    let holder = TcpStream::connect(server.address).await?;
    let mut waiting = TcpStream::connect(server.address).await?;
    waiting
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let early = tokio::time::timeout(Duration::from_millis(300), waiting.readable()).await;
    assert!(early.is_err(), "there is room for one only");
    drop(holder);
    assert_eq!(Answer::read(&mut waiting).await?.status, 200);
    server.stop().await
}

#[tokio::test]
async fn one_address_cannot_take_all_the_room() -> Result<()> {
    let server = Running::start("connections_max = 4\nheader_timeout_s = 600").await?;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await?;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await?;
        assert!(stream.read(&mut [0; 4096]).await? > 0, "there is room");
        held.push(stream);
    }
    let third = TcpStream::connect(server.address).await?;
    assert!(closed(third).await? < Duration::from_secs(5));
    held.clear();
    server.stop().await
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_ends_when_the_server_stops() -> Result<()> {
    let server = Running::start("").await?;
    let mut stream = TcpStream::connect(server.address).await?;
    for _ in 0..3 {
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await?;
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await?;
        assert!(answer[..count].starts_with(b"HTTP/1.1 200"));
    }
    let began = Instant::now();
    server.stop().await?;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "nothing was under way"
    );
    closed(stream).await?;
    Ok(())
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() -> Result<()> {
    let server = Running::start("").await?;
    let flags = [("listen", server.address.to_string())].into();
    let env = [("HOME".to_owned(), "/nonexistent".to_owned())].into_iter();
    let config = berth_server::config::Config::layer(None, env, flags)
        .unwrap()
        .config;
    let stop = server.stop.clone();
    let error = berth_server::serve(config, server.app.clone(), stop, |_| {})
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains(&server.address.to_string()),
        "{error}"
    );
    server.stop().await
}
