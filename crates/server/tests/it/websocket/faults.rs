//! Frames that should not be, and frames that are unusual and good.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};

use super::client::{Client, raw};
use super::{create, hello, with};
use crate::rig::Rig;

/// A frame of a client: masked, with a mask that changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a short one");
    assert!(length < 126);
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

/// The code that the server closes with, after whatever else it says.
async fn close_code(stream: &mut TcpStream) -> Option<u16> {
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the connection stays open").ok();
    let mut rest = &all[..];
    while let [first, length, tail @ ..] = rest {
        let (length, tail) = match length {
            126 => (usize::from(u16::from_be_bytes([tail[0], tail[1]])), &tail[2..]),
            short => (usize::from(*short), tail),
        };
        if first & 0x0f == 8 {
            return tail.get(..2).map(|code| u16::from_be_bytes([code[0], code[1]]));
        }
        rest = tail.get(length..).unwrap_or_default();
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_frames_close_the_connection_with_the_reason() {
    let rig = Rig::start(hello()).await;
    for (name, bytes, code) in [
        ("binary", frame(0x82, b"{}"), Some(1003)),
        ("not UTF-8", frame(0x81, b"\xff\xfe"), Some(1007)),
        ("not UTF-8, in parts", [frame(0x01, b"\xe2\x82"), frame(0x80, b"a")].concat(), Some(1007)),
        ("not masked", vec![0x81, 0x02, b'{', b'}'], Some(1002)),
        ("reserved bits", frame(0xc1, b"{}"), Some(1002)),
        ("an unknown kind", frame(0x83, b"{}"), Some(1002)),
        ("a continuation of nothing", frame(0x80, b"{}"), Some(1002)),
        ("a ping in parts", frame(0x09, b""), Some(1002)),
        ("a second beginning", [frame(0x01, b"{"), frame(0x81, b"}")].concat(), Some(1002)),
        ("a goodbye", frame(0x88, &[0x03, 0xe8]), Some(1000)),
        (
            "the longest frame there is",
            vec![0x81, 0xff, 0xff, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0],
            Some(1009),
        ),
        ("noise", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), Some(1002)),
    ] {
        let (socket, head) = raw(rig.address, &[]).await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        let mut stream = socket.into_inner();
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(close_code(&mut stream).await, code, "{name}");
    }
    assert_eq!(rig.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_may_come_in_parts_with_pings_between_them() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    let text = with(create("Grüße, 世界"), &json!({"stream_id": "parts"})).to_string();
    let parts: Vec<&[u8]> = text.as_bytes().chunks(7).collect();
    for (place, part) in parts.iter().enumerate() {
        let opcode = OpCode::Data(if place == 0 { Data::Text } else { Data::Continue });
        let header = FrameHeader { is_final: place + 1 == parts.len(), opcode, ..FrameHeader::default() };
        client.send_message(Message::Frame(Frame::from_payload(header, part.to_vec().into()))).await;
        client.send_message(Message::Ping("still here".into())).await;
    }
    let stream = client.stream().await;
    assert_eq!((stream.text.as_str(), &stream.events[0].1["stream_id"]), ("Hello", &json!("parts")));
    assert_eq!(super::history(&rig, 0), ["Grüße, 世界"]);
}

/// Every byte by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_may_be_cut_anywhere() {
    let rig = Rig::start(hello()).await;
    let (socket, _) = raw(rig.address, &[]).await;
    let mut stream = socket.into_inner();
    let text = r#"{"type":"response.create","model":"m","store":false,"input":"Hi"}"#;
    for byte in frame(0x81, text.as_bytes()).into_iter().chain(frame(0x88, &[0x03, 0xe8])) {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    // The goodbye ends the connection; the request was begun before it.
    assert_eq!(close_code(&mut stream).await, Some(1000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_pings_end_the_connection() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    for _ in 0..500 {
        client.send_message(Message::Ping("x".into())).await;
    }
    assert_eq!(client.respond(&create("Hi")).await.text, "Hello");
    let (socket, _) = raw(rig.address, &[]).await;
    let mut stream = socket.into_inner();
    let flood = frame(0x89, b"").repeat(1500);
    let (mut reading, mut writing) = stream.split();
    let written = async { drop(writing.write_all(&flood).await) };
    let mut all = Vec::new();
    let read = async { drop(reading.read_to_end(&mut all).await) };
    let both = futures_util::future::join(written, read);
    tokio::time::timeout(Duration::from_secs(20), both).await.expect("the flood goes on");
    assert!(all.windows(4).any(|bytes| bytes[0] == 0x88 && bytes[2..] == 1008_u16.to_be_bytes()));
}
