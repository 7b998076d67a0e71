//! How large an image is, in pixels, out of as few of its bytes as tell it. Nothing is decoded but headers.

use super::inline::digit;

/// How far into an image it is looked: a JPEG may have a preview and a colour profile before its size.
const FAR: usize = 1 << 20;

/// The longer side of an image in base64; none where its kind is not known, or its header is broken.
pub(super) fn longer_side(data: &str) -> Option<usize> {
    let head: Vec<u8> = bytes(data).take(30).collect();
    let (width, height) = match head.as_slice() {
        [0x89, b'P', b'N', b'G', ..] if head.get(12..16) == Some(b"IHDR") => (big(&head, 16..20)?, big(&head, 20..24)?),
        [b'G', b'I', b'F', b'8', ..] => (little(&head, 6..8)?, little(&head, 8..10)?),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp(&head)?,
        [0xff, 0xd8, ..] => jpeg(&mut bytes(data).take(FAR).skip(2))?,
        _ => return None,
    };
    Some(width.max(height))
}

/// The bytes of base64, one after the other.
fn bytes(data: &str) -> impl Iterator<Item = u8> {
    let mut digits = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).map_while(digit);
    let (mut bits, mut held) = (0_u16, 0);
    std::iter::from_fn(move || {
        while held < 8 {
            bits = bits << 6 | u16::from(digits.next()?);
            held += 6;
        }
        held -= 8;
        let [_, byte] = (bits >> held).to_be_bytes();
        Some(byte)
    })
}

fn big(head: &[u8], at: std::ops::Range<usize>) -> Option<usize> {
    Some(head.get(at)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn little(head: &[u8], at: std::ops::Range<usize>) -> Option<usize> {
    Some(head.get(at)?.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn webp(head: &[u8]) -> Option<(usize, usize)> {
    match head.get(12..16)? {
        b"VP8 " => Some((little(head, 26..28)? & 0x3fff, little(head, 28..30)? & 0x3fff)),
        b"VP8L" => {
            let sizes = little(head, 21..25)?;
            Some(((sizes & 0x3fff) + 1, (sizes >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(head, 24..27)? + 1, little(head, 27..30)? + 1)),
        _ => None,
    }
}

/// Segments until the one that begins a frame, which has the size.
fn jpeg(bytes: &mut impl Iterator<Item = u8>) -> Option<(usize, usize)> {
    loop {
        if bytes.next()? != 0xff {
            return None;
        }
        // Any number of fill bytes may come before a marker.
        match bytes.find(|byte| *byte != 0xff)? {
            0x01 | 0xd0..=0xd8 => {}
            0xd9 | 0xda => return None,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                // Its length, and how many bits a colour has.
                bytes.nth(2)?;
                return Some((number(bytes)?, number(bytes)?));
            }
            _ => {
                let rest = number(bytes)?.checked_sub(2)?;
                if rest > 0 {
                    bytes.nth(rest - 1)?;
                }
            }
        }
    }
}

fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    Some(usize::from(bytes.next()?) << 8 | usize::from(bytes.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for chunk in bytes.chunks(3) {
            let bits =
                chunk.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
            out.extend((0..=chunk.len()).map(|at| char::from(DIGITS[bits >> (18 - 6 * at) & 63])));
        }
        out
    }

    #[test]
    fn sizes_are_in_headers() {
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0, 0, 9, 0, 0, 0, 0, 7, 8, 6]].concat();
        let gif = b"GIF89a\x40\x01\xf0\0".to_vec();
        let lossy = [b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a".as_slice(), &[0x20, 3, 0x58, 2]].concat();
        let lossless = [b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f".as_slice(), &[0xff, 0xc1, 0x18, 0, 0]].concat();
        let extended = [b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0".as_slice(), &[0x0f, 0x27, 0, 0x63, 0, 0]].concat();
        // A segment of 4,000 bytes, fill bytes, a table, the frame.
        let mut jpeg = b"\xff\xd8\xff\xe1\x0f\xa0".to_vec();
        jpeg.extend(std::iter::repeat_n(0xff, 3998));
        jpeg.extend(b"\xff\xff\xff\xc4\0\x03\0\xff\xc2\0\x11\x08\x08\0\x10\0\x03");
        for (image, expected) in [
            (&png, Some(2304)),
            (&gif, Some(320)),
            (&lossy, Some(800)),
            (&lossless, Some(512)),
            (&extended, Some(10_000)),
            (&jpeg, Some(4096)),
            (&b"\xff\xd8\xff\xda\0\0".to_vec(), None),
            (&b"%PDF-1.7".to_vec(), None),
            (&Vec::new(), None),
        ] {
            assert_eq!(longer_side(&encoded(image)), expected, "{image:?}");
            for end in 0..encoded(image).len().min(40) {
                let _ = longer_side(&encoded(image)[..end]);
            }
        }
        assert_eq!(longer_side("not base64!"), None);
    }
}
