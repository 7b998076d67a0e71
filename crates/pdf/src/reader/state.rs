//! What text-showing operators depend on: the part of the graphics state that is about text, and the two matrices of a text
//! object.

use hayro_font::Font;
use hayro_font::kurbo::{Affine, Vec2};

/// Units of a font's widths.
const PER_EM: f64 = 1000.0;

/// What `q` keeps and `Q` brings back.
#[derive(Clone)]
pub(super) struct State<'a> {
    /// From the user's space to the page's.
    pub(super) ctm: Affine,
    pub(super) font: Option<Font<'a>>,
    pub(super) size: f64,
    pub(super) char_space: f64,
    pub(super) word_space: f64,
    /// 1 is as wide as the font says.
    pub(super) stretch: f64,
    pub(super) leading: f64,
    pub(super) rise: f64,
    pub(super) text: Affine,
    pub(super) line: Affine,
}

impl State<'_> {
    pub(super) fn new(ctm: Affine) -> Self {
        Self {
            ctm,
            font: None,
            size: 1.0,
            char_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
            text: Affine::IDENTITY,
            line: Affine::IDENTITY,
        }
    }

    /// From a glyph's space, in which the font is one unit high, to the page's.
    pub(super) fn glyph_transform(&self) -> Affine {
        self.ctm * self.text * Affine::new([self.size * self.stretch, 0.0, 0.0, self.size, 0.0, self.rise])
    }

    pub(super) fn set_matrix(&mut self, matrix: Affine) {
        (self.text, self.line) = (matrix, matrix);
    }

    pub(super) fn next_line(&mut self, x: f64, y: f64) {
        self.set_matrix(self.line * Affine::translate((x, y)));
    }

    /// Moves on by what a character takes, in thousandths of the font's size.
    pub(super) fn advance(&mut self, by: Vec2, is_horizontal: bool, is_space: bool) {
        let space = self.char_space + if is_space { self.word_space } else { 0.0 };
        let by = if is_horizontal {
            Vec2::new((by.x / PER_EM * self.size + space) * self.stretch, 0.0)
        } else {
            Vec2::new(0.0, by.y / PER_EM * self.size + space)
        };
        self.text *= Affine::translate(by);
    }

    /// Moves back by a number of `TJ`, in thousandths.
    pub(super) fn adjust(&mut self, by: f64, is_horizontal: bool) {
        let by = -by / PER_EM * self.size;
        let by = if is_horizontal { Vec2::new(by * self.stretch, 0.0) } else { Vec2::new(0.0, by) };
        self.text *= Affine::translate(by);
    }
}
