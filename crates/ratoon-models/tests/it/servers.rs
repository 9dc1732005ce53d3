//! Servers that do what the fake provider cannot: bytes under control, connections counted, requests seen whole.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server on a loopback port. Each connection has a thread of its own, which ends with the connection; the
/// listening thread ends with the process.
pub(crate) struct Server {
    pub(crate) base_url: String,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    connections: usize,
    heads: Vec<String>,
}

impl Server {
    /// Hands every request on every connection to `answer`, until it fails because the client is gone.
    pub(crate) fn start(
        answer: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let base_url = format!("http://{}", listener.local_addr().expect("a bound address"));
        let log = Arc::new(Mutex::new(Log::default()));
        let server = Server { base_url, log: Arc::clone(&log) };
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                log.lock().unwrap().connections += 1;
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        server
    }

    /// Answers everything with one reply.
    pub(crate) fn replying(reply: impl Into<Vec<u8>>) -> Server {
        let reply = reply.into();
        Server::start(move |stream| stream.write_all(&reply))
    }

    /// How many connections were accepted.
    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }

    /// The request lines and headers seen, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.log.lock().unwrap().heads.clone()
    }
}

fn serve(stream: TcpStream, log: &Mutex<Log>, answer: &dyn Fn(&mut TcpStream) -> std::io::Result<()>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream can be cloned"));
    let mut stream = stream;
    while let Some(head) = read_request(&mut reader) {
        log.lock().unwrap().heads.push(head);
        if answer(&mut stream).is_err() {
            return;
        }
    }
}

/// The head of the next request, with its body read and dropped.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    Some(head)
}

/// A complete reply with a JSON body.
pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A System One body with one probability for `t1` and `t2`.
pub(crate) fn both(probability: &str) -> String {
    let answer = format!(r#"{{"type":"noul","noul":{probability}}}"#);
    format!(r#"{{"model":"m","answers":{{"t1":{answer},"t2":{answer}}},"usage":{{}}}}"#)
}

/// Posts a body and expects success.
pub(crate) fn post(base_url: &str, path: &str, body: &str) {
    let address = base_url.strip_prefix("http://").expect("a server on this machine");
    let mut stream = TcpStream::connect(address).expect("a server that listens");
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).expect("a server that reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a server that answers text");
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
}
