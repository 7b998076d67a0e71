//! A search service that answers as `SearXNG` does, and a page for whoever fetches one.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};
use serde_json::json;

/// Serves until this process ends.
pub(super) fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A peer that goes away is no failure of ours: its test says what it missed.
            thread::spawn(move || answer(stream, address).ok());
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, address: SocketAddr) -> Result<()> {
    let target = request(&mut BufReader::new(stream.try_clone()?))?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (status, kind, body) = match path {
        "/search" if query.contains("broken") => ("500 Internal Server Error", "text/plain", "broken".to_owned()),
        "/search" => ("200 OK", "application/json", results(query, address)),
        "/page" => ("200 OK", "text/html", PAGE.to_owned()),
        _ => ("404 Not Found", "text/plain", "nothing here".to_owned()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    Ok(())
}

/// Reads one request without a body, and gives its target.
fn request(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let target = line.split(' ').nth(1).context("no request line")?.to_owned();
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line)?;
    }
    Ok(target)
}

const PAGE: &str = "<html><head><title>A page</title></head><body><h1>Foxes at home</h1>\
    <p>The fox sleeps in its den.</p><script>ignore()</script></body></html>";

/// Two pages that nobody can reach, and one that a model may not.
fn results(query: &str, address: SocketAddr) -> String {
    if query.contains("nothing") {
        return json!({"query": query, "results": []}).to_string();
    }
    let results = json!([
        {"title": "Foxes of the north", "url": "https://foxes.example/north", "content": "They are <b>white</b> in winter.",
         "publishedDate": "2026-03-01T00:00:00", "engine": "test", "score": 1.0},
        {"title": "Foxes of the south", "url": "https://other.example/south_(hot)", "content": "They have large ears."},
        {"title": "Foxes at home", "url": format!("http://{address}/page"), "content": "They sleep."},
    ]);
    json!({"query": query, "number_of_results": 3, "results": results, "answers": [], "suggestions": []}).to_string()
}
