//! How many images a provider takes, and how large ones. What is beyond is left out: a request with one image too many is
//! refused as a whole, and so is every later one of that conversation.
//!
//! Images go in the order in which they came, several at a time. So the beginning of a conversation, which providers cache,
//! and which what they have thought may be bound to, changes once in a while and not with every image.

use wire::chat::{Content, Message, Part, Str};

use super::side::longer_side;
use crate::dialect::ContentRules;
use crate::plan::notes::{Notes, code};

const TOO_LARGE: &str = "[image omitted: it is larger than this model takes]";
const TOO_OLD: &str = "[image omitted: there were more images than this model takes, and this was among the oldest]";

/// At most so many are left out at once because of their number.
const STEP: usize = 10;

/// An image, and where it is.
#[derive(Debug, Clone, Copy)]
struct Image {
    message: usize,
    part: usize,
    /// Digits of base64; none where it is elsewhere.
    bytes: usize,
    side: usize,
}

pub(in crate::plan) fn keep_to_limits(messages: &mut [Message<'_>], rules: &ContentRules, notes: &mut Notes) {
    let counts = [rules.max_images, rules.max_images_bytes, rules.many_images];
    let sizes = [rules.max_image_bytes, rules.max_image_side];
    if counts.iter().chain(&sizes).all(Option::is_none) {
        return;
    }
    let mut kept: Vec<Image> = Vec::new();
    let mut large = 0;
    let mut left_out: Vec<(Image, &'static str)> = Vec::new();
    for image in images(messages, rules) {
        let beyond = |most: Option<usize>, size: usize| most.is_some_and(|most| size > most);
        if beyond(rules.max_image_bytes, image.bytes) || beyond(rules.max_image_side, image.side) {
            left_out.push((image, TOO_LARGE));
            large += 1;
            continue;
        }
        kept.push(image);
        make_room(&mut kept, rules, |image| left_out.push((image, TOO_OLD)));
    }
    let old = left_out.len() - large;
    for (count, why) in [(large, "larger than this provider takes"), (old, "the oldest of more than it takes")] {
        if count > 0 {
            notes.degraded(code::CONTENT_DEGRADED, "input", format!("images left out: {count}, {why}"));
        }
    }
    for (image, said) in left_out {
        if let Some(part) =
            messages.get_mut(image.message).and_then(parts_mut).and_then(|parts| parts.get_mut(image.part))
        {
            *part = Part::Text(Str::Ours(said.into()));
        }
    }
}

/// All images in their order.
fn images(messages: &[Message<'_>], rules: &ContentRules) -> Vec<Image> {
    let asks_size = rules.max_image_side.or(rules.many_images_side).is_some();
    let mut images = Vec::new();
    for (message, content) in messages.iter().enumerate() {
        for (part, content) in parts(content).iter().enumerate() {
            let Part::ImageUrl { url, .. } = content else { continue };
            let url = url.decode();
            let data = url.strip_prefix("data:").and_then(|url| url.split_once(',')).map(|(_, data)| data);
            let side = data.filter(|_| asks_size).and_then(longer_side);
            let bytes = data.map_or(0, str::len);
            images.push(Image { message, part, bytes, side: side.unwrap_or(0) });
        }
    }
    images
}

fn parts<'m, 'a>(message: &'m Message<'a>) -> &'m [Part<'a>] {
    match message {
        Message::Plain { content: Content::Parts(parts), .. }
        | Message::Tool { content: Content::Parts(parts), .. } => parts,
        Message::Plain { .. } | Message::Tool { .. } | Message::Assistant { .. } => &[],
    }
}

fn parts_mut<'m, 'a>(message: &'m mut Message<'a>) -> Option<&'m mut Vec<Part<'a>>> {
    match message {
        Message::Plain { content: Content::Parts(parts), .. }
        | Message::Tool { content: Content::Parts(parts), .. } => Some(parts),
        Message::Plain { .. } | Message::Tool { .. } | Message::Assistant { .. } => None,
    }
}

/// Leaves out what is too much since the last one has come. The last one stays.
fn make_room(kept: &mut Vec<Image>, rules: &ContentRules, mut leave_out: impl FnMut(Image)) {
    let step = |most: usize| (most / 2).clamp(1, STEP);
    if let Some(most) = rules.max_images.filter(|most| kept.len() > *most) {
        kept.drain(..step(most).min(kept.len() - 1)).for_each(&mut leave_out);
    }
    let mut bytes: usize = kept.iter().map(|image| image.bytes).sum();
    if let Some(most) = rules.max_images_bytes.filter(|most| bytes > *most) {
        let mut old = 0;
        while old + 1 < kept.len() && bytes > most / 4 * 3 {
            bytes -= kept[old].bytes;
            old += 1;
        }
        kept.drain(..old).for_each(&mut leave_out);
    }
    let (Some(many), Some(side)) = (rules.many_images, rules.many_images_side) else { return };
    while kept.len() > many.max(1) {
        let is_large = |image: &Image| image.side > side;
        let recent = kept.len() - (many / 2).min(kept.len());
        if !kept.iter().any(is_large) {
            return;
        }
        if kept[recent..].iter().any(is_large) {
            kept.drain(..step(many).min(kept.len() - 1)).for_each(&mut leave_out);
        } else {
            kept.extract_if(.., |image| is_large(image)).for_each(&mut leave_out);
        }
    }
}
