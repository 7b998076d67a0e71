//! Images: how many, how large each, how large all of them. Only PNGs are measured: tests send no others.

use serde_json::{Map, Value};

use super::demand;

const MOST: usize = 600;
const MANY: usize = 20;
const LARGEST: u32 = 8000;
const LARGEST_OF_MANY: u32 = 2000;
const LONGEST: usize = 5 * 1024 * 1024;
const LONGEST_BODY: usize = 32_000_000;

pub(super) fn check(body: &Map<String, Value>) -> Result<(), String> {
    let mut found = Vec::new();
    collect(body.get("messages").unwrap_or(&Value::Null), &mut found);
    demand(found.len() <= MOST, || format!("too many images: {}", found.len()))?;
    let largest = if found.len() > MANY { LARGEST_OF_MANY } else { LARGEST };
    let mut all = 0;
    for data in &found {
        all += data.len();
        demand(data.len() <= LONGEST, || format!("image exceeds 5 MB maximum: {} bytes", data.len()))?;
        let side = side(data).unwrap_or(0);
        demand(side <= largest, || format!("an image of {side} pixels, of {} images", found.len()))?;
    }
    demand(all <= LONGEST_BODY, || format!("request_too_large: {all} bytes of images"))
}

/// The data of every image, in messages and in results of tools; what is elsewhere counts as one without data.
fn collect<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Object(members) if members.get("type").is_some_and(|kind| kind == "image") => {
            found.push(value["source"]["data"].as_str().unwrap_or_default());
        }
        Value::Object(members) => collect(members.get("content").unwrap_or(&Value::Null), found),
        _ => {}
    }
}

pub(super) const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn side(data: &str) -> Option<u32> {
    let digit = |digit: u8| DIGITS.iter().position(|known| *known == digit);
    let mut head = Vec::new();
    for four in data.get(..32)?.as_bytes().chunks(4) {
        let bits = four.iter().try_fold(0, |bits, byte| Some(bits << 6 | u32::try_from(digit(*byte)?).ok()?))?;
        head.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    if head.starts_with(b"\x89PNG") && head.get(12..16) == Some(b"IHDR") {
        Some(number(16)?.max(number(20)?))
    } else {
        None
    }
}
