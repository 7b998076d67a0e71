//! Glyphs at their places → lines of text: where a gap is a space, where a line ends, where a paragraph does. All by
//! distances in heights of the font, along and across the direction of writing, so that it holds for any rotation and for
//! vertical text.

use hayro_font::kurbo::{Point, Vec2};

/// A gap as wide as this is a space. Kerning is narrower, the narrowest spaces of justified text are not.
const SPACE: f64 = 0.15;
/// Between characters that are as wide as they are high, and set apart without a meaning.
const WIDE_SPACE: f64 = 0.5;
/// A gap as wide as this is between the columns of a table.
const COLUMN: f64 = 2.5;
/// Further across than superscripts are.
const LINE: f64 = 0.6;
/// Further across than the next line is.
const PARAGRAPH: f64 = 1.9;
/// Further back than kerning goes.
const BACK: f64 = 0.8;
/// As near to itself a glyph is drawn twice to look bold.
const TWICE: f64 = 0.15;

/// One glyph, as the page shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) origin: Point,
    /// Where the next one would be.
    pub(super) end: Point,
    /// The font's height on the page.
    pub(super) size: f64,
}

/// The text of a page as it grows.
#[derive(Debug)]
pub(super) struct Layout {
    out: String,
    room: usize,
    is_full: bool,
    last: Option<(Placed, char)>,
}

impl Layout {
    pub(super) const fn new(room: usize) -> Self {
        Self { out: String::new(), room, is_full: false, last: None }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// What comes now has nothing to do with what was before.
    pub(super) fn part(&mut self) {
        self.last = None;
        self.end_line(1);
    }

    /// One glyph and what it stands for, which may be nothing or several characters.
    pub(super) fn glyph(&mut self, text: &str, at: Placed) {
        let first = text.chars().next();
        if let (Some((last, said)), Some(first)) = (self.last, first) {
            if said == first && (at.origin - last.origin).hypot() < TWICE * at.size {
                return;
            }
            self.step(last, said, at, first);
        }
        for character in text.chars() {
            self.say(character);
        }
        // What stands for nothing still moves the place.
        let said = text.chars().last().or(self.last.map(|(_, said)| said)).unwrap_or(' ');
        self.last = Some((at, said));
    }

    /// From one glyph to the next.
    fn step(&mut self, last: Placed, said: char, at: Placed, next: char) {
        let size = last.size.max(at.size);
        let way = last.end - last.origin;
        let (way, gap) = (unit(way), at.origin - last.end);
        let turned = unit(at.end - at.origin).dot(way) < 0.9;
        let (along, across) = (gap.dot(way), gap.cross(way).abs());
        // A size of nothing, or a place beyond all numbers: no distance says anything.
        if !(size.is_finite() && size > 0.0 && along.is_finite() && across.is_finite()) {
            return;
        }
        let (along, across) = (along / size, across / size);
        if across > PARAGRAPH {
            self.end_line(2);
        } else if across > LINE || (turned && across.max(along.abs()) > SPACE) {
            self.end_line(1);
        } else if is_right_to_left(next) && along < 0.0 {
            let gap = (last.origin - at.end).dot(way) / size;
            self.gap(gap, SPACE);
        } else if along < -BACK {
            self.end_line(1);
        } else {
            self.gap(along, if is_wide(said) && is_wide(next) { WIDE_SPACE } else { SPACE });
        }
    }

    fn gap(&mut self, gap: f64, space: f64) {
        if gap > COLUMN {
            self.separate('\t');
        } else if gap > space {
            self.separate(' ');
        }
    }

    /// Puts a space of this kind, where none is.
    fn separate(&mut self, space: char) {
        if !self.out.ends_with([' ', '\t', '\n']) {
            self.push(space);
        }
    }

    fn end_line(&mut self, breaks: usize) {
        self.trim_line();
        if self.out.is_empty() {
            return;
        }
        let there = self.out.bytes().rev().take_while(|byte| *byte == b'\n').count();
        for _ in there..breaks {
            self.push('\n');
        }
    }

    fn trim_line(&mut self) {
        let kept = self.out.trim_end_matches([' ', '\t']).len();
        self.out.truncate(kept);
    }

    /// One character, as it is best written in text.
    fn say(&mut self, character: char) {
        match character {
            ' ' | '\t' | '\n' | '\r' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => {
                if !self.out.is_empty() {
                    self.separate(' ');
                }
            }
            '\u{ad}' => self.push('-'),
            '\u{fb00}' => self.push_str("ff"),
            '\u{fb01}' => self.push_str("fi"),
            '\u{fb02}' => self.push_str("fl"),
            '\u{fb03}' => self.push_str("ffi"),
            '\u{fb04}' => self.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => self.push_str("st"),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {}
            character if character.is_control() => {}
            character => self.push(character),
        }
    }

    fn push_str(&mut self, text: &str) {
        text.chars().for_each(|character| self.push(character));
    }

    fn push(&mut self, character: char) {
        if self.out.len() + character.len_utf8() > self.room {
            self.is_full = true;
        }
        if !self.is_full {
            self.out.push(character);
        }
    }

    /// The text, and whether there was more.
    pub(super) fn finish(mut self) -> (String, bool) {
        let kept = self.out.trim_end().len();
        self.out.truncate(kept);
        (self.out, self.is_full)
    }
}

fn unit(way: Vec2) -> Vec2 {
    let length = way.hypot();
    if length.is_finite() && length > 0.0 { way / length } else { Vec2::new(1.0, 0.0) }
}

fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Written without spaces between words.
fn is_wide(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glyphs of half a font's height, at places in heights.
    fn laid(glyphs: &[(&str, f64, f64)]) -> String {
        let mut layout = Layout::new(1000);
        for (text, x, y) in glyphs {
            let origin = Point::new(x * 10.0, y * 10.0);
            layout.glyph(text, Placed { origin, end: origin + Vec2::new(5.0, 0.0), size: 10.0 });
        }
        layout.finish().0
    }

    #[test]
    fn places_become_spaces_and_lines() {
        for (glyphs, expected) in [
            (&[("a", 0.0, 0.0), ("b", 0.5, 0.0)][..], "ab"),
            (&[("a", 0.0, 0.0), ("b", 0.6, 0.0)], "ab"),
            (&[("a", 0.0, 0.0), ("b", 0.75, 0.0)], "a b"),
            (&[("a", 0.0, 0.0), ("b", 4.0, 0.0)], "a\tb"),
            (&[("a", 0.0, 0.0), (" ", 0.5, 0.0), ("b", 1.3, 0.0)], "a b"),
            (&[("a", 0.0, 0.0), ("b", 0.0, -1.2)], "a\nb"),
            (&[("a", 0.0, 0.0), (" ", 0.5, 0.0), ("b", 0.0, -3.0)], "a\n\nb"),
            (&[("x", 0.0, 0.0), ("2", 0.5, 0.4), ("y", 1.0, 0.0)], "x2y"),
            (&[("a", 0.0, 0.0), ("a", 0.05, 0.0), ("b", 0.5, 0.0)], "ab"),
            (&[("b", 5.0, 0.0), ("a", 0.0, 0.0)], "b\na"),
            (&[("字", 0.0, 0.0), ("体", 0.8, 0.0), ("一", 2.0, 0.0)], "字体 一"),
            (&[("\u{fb01}", 0.0, 0.0), ("x", 0.5, 0.0)], "fix"),
            (&[("ש", 5.0, 0.0), ("ל", 4.5, 0.0), ("ו", 3.5, 0.0)], "של ו"),
            (&[("a", f64::NAN, 0.0), ("b", 0.5, 0.0)], "ab"),
            (&[("a\u{0}\u{7}", 0.0, 0.0), ("\u{a0}", 0.5, 0.0)], "a"),
        ] {
            assert_eq!(laid(glyphs), expected, "{glyphs:?}");
        }
    }

    #[test]
    fn there_is_no_more_than_room_for() {
        let mut layout = Layout::new(4);
        for _ in 0..3 {
            layout.part();
            layout.glyph("字", Placed { origin: Point::ZERO, end: Point::new(1.0, 0.0), size: 1.0 });
        }
        assert!(layout.is_full());
        assert_eq!(layout.finish(), ("字".to_owned(), true));
    }
}
