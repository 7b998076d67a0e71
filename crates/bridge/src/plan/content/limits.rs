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
    let (mut kept, mut large) = (Kept::new(rules), Vec::new());
    for image in images(messages, rules) {
        let beyond = |most: Option<usize>, size: usize| most.is_some_and(|most| size > most);
        if beyond(rules.max_image_bytes, image.bytes) || beyond(rules.max_image_side, image.side) {
            large.push(image);
        } else {
            kept.push(image);
        }
    }
    for (left_out, said, why) in [
        (large, TOO_LARGE, "larger than this provider takes"),
        (kept.left_out, TOO_OLD, "the oldest of more than it takes"),
    ] {
        if !left_out.is_empty() {
            notes.degraded(code::CONTENT_DEGRADED, "input", format!("images left out: {}, {why}", left_out.len()));
        }
        for image in left_out {
            let parts = messages.get_mut(image.message).and_then(parts_mut);
            if let Some(part) = parts.and_then(|parts| parts.get_mut(image.part)) {
                *part = Part::Text(Str::Ours(said.into()));
            }
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

/// The images that stay, and what has to be known of all of them: there may be very many small ones.
struct Kept<'r> {
    rules: &'r ContentRules,
    images: Vec<Image>,
    bytes: usize,
    /// Those that are too large to be among many.
    large: usize,
    left_out: Vec<Image>,
}

impl<'r> Kept<'r> {
    const fn new(rules: &'r ContentRules) -> Self {
        Self { rules, images: Vec::new(), bytes: 0, large: 0, left_out: Vec::new() }
    }

    fn is_large(&self, image: &Image) -> bool {
        self.rules.many_images_side.is_some_and(|side| image.side > side)
    }

    fn push(&mut self, image: Image) {
        self.bytes += image.bytes;
        self.large += usize::from(self.is_large(&image));
        self.images.push(image);
        self.make_room();
    }

    /// Leaves out what is too much since the last one has come. The last one stays.
    fn make_room(&mut self) {
        let step = |most: usize| (most / 2).clamp(1, STEP);
        if let Some(most) = self.rules.max_images.filter(|most| self.images.len() > *most) {
            self.leave_out(step(most));
        }
        if let Some(most) = self.rules.max_images_bytes.filter(|most| self.bytes > *most) {
            let mut left = self.bytes;
            let old = self.images.iter().take_while(|image| {
                let is_too_much = left > most / 4 * 3;
                left -= image.bytes;
                is_too_much
            });
            self.leave_out(old.count());
        }
        let Some(many) = self.rules.many_images else { return };
        while self.large > 0 && self.images.len() > many.max(1) {
            let recent = self.images.len() - (many / 2).min(self.images.len());
            if self.images[recent..].iter().any(|image| self.is_large(image)) {
                self.leave_out(step(many));
            } else {
                self.leave_out_large();
            }
        }
    }

    /// So many of the oldest.
    fn leave_out(&mut self, count: usize) {
        let old = self.images.drain(..count.min(self.images.len() - 1)).collect();
        self.gone(old);
    }

    fn leave_out_large(&mut self) {
        let side = self.rules.many_images_side.unwrap_or(usize::MAX);
        let large = self.images.extract_if(.., |image| image.side > side).collect();
        self.gone(large);
    }

    fn gone(&mut self, images: Vec<Image>) {
        self.bytes -= images.iter().map(|image| image.bytes).sum::<usize>();
        self.large -= images.iter().filter(|image| self.is_large(image)).count();
        self.left_out.extend(images);
    }
}
