//! What takes tokens and is no text. The rules are OpenAI's published one for images (85 tokens, and 170 more for each
//! square of 512 pixels when it is looked at closely), and flat values where nothing is published.

use wire::json::Text;

/// Bytes of sound for one token: about ten tokens for a second of compressed speech.
pub(crate) const AUDIO_BYTES: u64 = 1600;
/// Bytes of a file for one token: documents are far larger than their text.
pub(crate) const FILE_BYTES: u64 = 32;

/// An image seen from afar, and the part of each tile of one that is looked at closely.
const BASE: u64 = 85;
const TILE: u64 = 170;
/// An image of which only the address is known: one of 1024 × 1024.
const UNKNOWN: u64 = BASE + 4 * TILE;

/// As many tokens as OpenAI's rule says for an image of that size.
pub(crate) fn tokens(url: Option<Text<'_>>, detail: Option<Text<'_>>) -> u64 {
    if detail.is_some_and(|detail| detail.is("low")) {
        return BASE;
    }
    let data = url.and_then(|url| {
        let (head, data) = url.escaped().split_once(',')?;
        (head.starts_with("data:") && head.ends_with(";base64")).then_some(data)
    });
    tokens_of(data)
}

/// The same, of an image as base64.
pub(crate) fn tokens_of(base64: Option<&str>) -> u64 {
    let size = base64.and_then(|data| size(&start(data)));
    size.map_or(UNKNOWN, |(width, height)| BASE + TILE * tiles(width, height))
}

/// How many squares of 512 pixels an image has, scaled to fit 2048 × 2048 and then to a shortest side of 768.
fn tiles(width: u32, height: u32) -> u64 {
    let (width, height) = (f64::from(width.max(1)), f64::from(height.max(1)));
    let fits = (2048.0 / width.max(height)).min(1.0);
    let scale = fits * (768.0 / (fits * width.min(height))).min(1.0);
    let (width, height) = (width * scale, height * scale);
    let squares =
        |side: f64| -> u64 { (1..=4_u32).find(|count| side <= 512.0 * f64::from(*count)).map_or(4, u64::from) };
    squares(width) * squares(height)
}

/// As much of an image as has its size in it, usually.
const START: usize = 4096;

/// The first bytes of what is written as base64.
fn start(base64: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in base64.bytes().take(START / 3 * 4) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\\' => continue,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    out
}

/// Width and height, where the format is one that chat providers take.
fn size(data: &[u8]) -> Option<(u32, u32)> {
    let be = |at: usize, bytes: usize| number(data, at, bytes, false);
    let le = |at: usize, bytes: usize| number(data, at, bytes, true);
    match data {
        [0x89, b'P', b'N', b'G', ..] => Some((be(16, 4)?, be(20, 4)?)),
        [b'G', b'I', b'F', b'8', ..] => Some((le(6, 2)?, le(8, 2)?)),
        [0xff, 0xd8, ..] => jpeg(data),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', b'V', b'P', b'8', form, ..] => match form {
            b'X' => Some((le(24, 3)? + 1, le(27, 3)? + 1)),
            b'L' => le(21, 4).map(|bits| ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)),
            _ => Some((le(26, 2)? & 0x3fff, le(28, 2)? & 0x3fff)),
        },
        _ => None,
    }
}

/// The size is in the frame's header, which comes after any number of other segments.
fn jpeg(data: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *data.get(at + 1)?;
        if (0xc0..=0xcf).contains(&marker) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Some((number(data, at + 7, 2, false)?, number(data, at + 5, 2, false)?));
        }
        at += 2 + number(data, at + 2, 2, false)? as usize;
    }
}

fn number(data: &[u8], at: usize, bytes: usize, little: bool) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(bytes)?)?;
    let fold = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
    Some(if little { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) })
}

#[cfg(test)]
mod tests {
    use wire::json::Raw;

    use super::*;

    /// As many as OpenAI's examples say.
    #[test]
    fn tiles_are_counted_as_published() {
        for (width, height, tokens) in
            [(1024, 1024, 765), (2048, 4096, 1105), (512, 512, 255), (1, 1, 255), (4096, 8192, 1105), (10_000, 1, 765)]
        {
            assert_eq!(BASE + TILE * tiles(width, height), tokens, "{width} × {height}");
        }
    }

    #[test]
    fn sizes_are_read_out_of_the_first_bytes() {
        // The first bytes of images of 300 × 200.
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x2c\0\0\0\xc8\x08";
        let gif = b"GIF89a\x2c\x01\xc8\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\xc8\x01\x2c\x03";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x2b\xc1\x31\0";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x2c\x01\xc8\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x2b\x01\0\xc7\0\0";
        for image in [&png[..], gif, jpeg, lossless, lossy, extended] {
            assert_eq!(size(image), Some((300, 200)), "{image:?}");
            for cut in 0..image.len().min(20) {
                let _ = size(&image[..cut]);
            }
        }
        assert_eq!(size(b"\xff\xd8\xff\xe0\xff\xff"), None);
    }

    #[test]
    fn an_image_without_a_size_has_the_usual_one() {
        let text = |json: &'static str| Raw::ours(json).text();
        for (url, detail, tokens_of_it) in [
            (r#""https://x/y.png""#, None, 765),
            (r#""data:image/png;base64,AAAA""#, None, 765),
            (r#""data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAASwAAADICA""#, None, 255),
            (r#""https://x/y.png""#, Some(r#""low""#), 85),
        ] {
            assert_eq!(tokens(text(url), detail.and_then(text)), tokens_of_it, "{url}");
        }
    }
}
