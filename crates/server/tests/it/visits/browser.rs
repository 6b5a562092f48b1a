//! A browser, as far as it matters here: cookies by host, headers that pages cannot write, and sockets.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything here takes, shorter than anyone waits for a stuck test.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Cookie {
    host: String,
    path: String,
    name: String,
    value: String,
}

/// One browser of one person.
#[derive(Debug)]
pub struct Browser {
    pub address: SocketAddr,
    cookies: Mutex<Vec<Cookie>>,
}

/// A request on its way to be made.
#[derive(Debug, Clone)]
pub struct Ask {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Ask {
    pub fn new(method: &str, url: &str) -> Ask {
        Ask {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub fn get(url: &str) -> Ask {
        Ask::new("GET", url)
    }

    /// As when somebody follows a link.
    pub fn page(url: &str) -> Ask {
        Ask::get(url)
            .header("accept", "text/html,*/*")
            .header("sec-fetch-mode", "navigate")
            .header("sec-fetch-dest", "document")
            .header("sec-fetch-site", "none")
    }

    pub fn socket(url: &str, origin: Option<&str>) -> Ask {
        let ask = Ask::get(url)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        match origin {
            Some(origin) => ask.header("origin", origin),
            None => ask,
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: String) -> Ask {
        self.body = body;
        self
    }
}

impl Browser {
    pub fn new(address: SocketAddr) -> Browser {
        Browser {
            address,
            cookies: Mutex::default(),
        }
    }

    pub async fn send(&self, ask: Ask) -> Answer {
        let mut stream = self.connect(&ask, "close").await;
        let mut bytes = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        read.expect("an answer in time").expect("an answer");
        let answer = Answer::read(&bytes);
        self.keep(&ask.url, &answer);
        answer
    }

    /// Follows redirects to the end, as a browser does; says where it came to.
    pub async fn visit(&self, url: &str) -> (String, Answer) {
        let mut url = url.to_owned();
        for _ in 0..10 {
            let answer = self.send(Ask::page(&url)).await;
            let Some(to) = answer.header("location") else {
                return (url, answer);
            };
            let (scheme, rest) = url.split_once("://").unwrap();
            let host = rest.split('/').next().unwrap();
            url = match to.starts_with('/') {
                true => format!("{scheme}://{host}{to}"),
                false => to.to_owned(),
            };
        }
        panic!("round and round, at last to {url}");
    }

    /// Asks for something that does not end; gives the head, and the connection for the rest.
    pub async fn open(&self, ask: Ask) -> (Answer, TcpStream) {
        let mut stream = self.connect(&ask, "").await;
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let byte = timeout(PATIENCE, stream.read_u8()).await;
            bytes.push(byte.expect("an answer in time").expect("a head"));
        }
        (Answer::read(&bytes), stream)
    }

    async fn connect(&self, ask: &Ask, connection: &str) -> TcpStream {
        let (host, path) = parts(&ask.url);
        let mut head = format!("{} {path} HTTP/1.1\r\nhost: {host}\r\n", ask.method);
        if !connection.is_empty() {
            head += &format!("connection: {connection}\r\n");
        }
        if !ask.body.is_empty() || ask.method == "POST" {
            head += &format!("content-length: {}\r\n", ask.body.len());
        }
        let own: Vec<String> = self
            .cookies
            .lock()
            .unwrap()
            .iter()
            .filter(|cookie| cookie.host == host && path.starts_with(&cookie.path))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        if !own.is_empty() {
            head += &format!("cookie: {}\r\n", own.join("; "));
        }
        for (name, value) in &ask.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let whole = format!("{head}\r\n{}", ask.body);
        stream.write_all(whole.as_bytes()).await.unwrap();
        stream
    }

    fn keep(&self, url: &str, answer: &Answer) {
        let (host, _) = parts(url);
        let mut cookies = self.cookies.lock().unwrap();
        for line in answer.headers("set-cookie") {
            let mut attributes = line.split("; ");
            let (name, value) = attributes.next().unwrap().split_once('=').unwrap();
            let path = attributes.find_map(|one| one.strip_prefix("Path="));
            cookies.retain(|cookie| !(cookie.host == host && cookie.name == name));
            cookies.push(Cookie {
                host: host.clone(),
                path: path.unwrap_or("/").to_owned(),
                name: name.to_owned(),
                value: value.to_owned(),
            });
        }
    }

    /// Sets a cookie that another host's page has tossed over: it comes first, as browsers send longer paths first.
    pub fn toss(&self, url: &str, name: &str, value: &str) {
        let (host, _) = parts(url);
        let cookie = Cookie {
            host,
            path: "/".to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        self.cookies.lock().unwrap().insert(0, cookie);
    }

    pub fn has_cookie(&self, url: &str, name: &str) -> bool {
        let (host, _) = parts(url);
        let cookies = self.cookies.lock().unwrap();
        cookies
            .iter()
            .any(|cookie| cookie.host == host && cookie.name == name)
    }
}

fn parts(url: &str) -> (String, String) {
    let (_, rest) = url.split_once("://").expect("an address");
    match rest.split_once('/') {
        Some((host, path)) => (host.to_owned(), format!("/{path}")),
        None => (rest.to_owned(), "/".to_owned()),
    }
}

/// Waits until the other side has closed the connection, whatever it said before.
pub async fn until_closed(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    let closed = async { while let Ok(1..) = stream.read(&mut buffer).await {} };
    timeout(PATIENCE, closed).await.expect("it is cut");
}

/// Whether a socket brings back what is sent.
pub async fn echoes(stream: &mut TcpStream) -> bool {
    let mut back = [0; 5];
    stream.write_all(b"hello").await.is_ok()
        && timeout(PATIENCE, stream.read_exact(&mut back))
            .await
            .expect("an echo or an end")
            .is_ok()
        && &back == b"hello"
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn read(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        Answer {
            status: status.parse().expect("a status"),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub fn headers(&self, name: &str) -> Vec<&str> {
        let line = |line: &'_ str| {
            let (key, _) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(())
        };
        let lines = self.head.lines().skip(1).filter(|one| line(one).is_some());
        lines
            .filter_map(|line| line.split_once(':').map(|(_, value)| value.trim()))
            .collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).first().copied()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    pub fn is_from_the_app(&self) -> bool {
        self.status == 200 && self.body.contains("\"app\":\"tiny\"")
    }
}
