//! Runs the operators of a page that are about text, and of the forms that it draws. Everything else is passed over: no
//! image is decoded, no path is made.

use std::sync::Arc;

use hayro_cmap::BfString;
use hayro_font::kurbo::{Affine, Point};
use hayro_font::{CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn, GlyphId, StandardFont};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::{Array, Dict, Name, Number, Object, Stream};
use hayro_syntax::page::{Page, Resources};

use super::layout::{Layout, Placed};
use super::marked::Marked;
use super::state::State;
use super::work::Work;

/// Forms within forms.
const DEEPEST: usize = 24;
/// `q` within `q`.
const MOST_SAVED: usize = 1024;

/// The fonts of a document.
pub(super) struct Fonts<'a> {
    cache: FontCache<'a>,
    resolver: FontResolverFn,
    cmaps: CMapResolverFn,
}

impl Default for Fonts<'_> {
    fn default() -> Self {
        Self {
            cache: FontCache::new(),
            // A font that is not in the file need not look alike: its widths and names are what counts.
            resolver: Arc::new(|query| match query {
                FontQuery::Standard(font) => Some(font.get_font_data()),
                FontQuery::Fallback(font) => Some(font.pick_standard_font().get_font_data()),
            }),
            cmaps: Arc::new(hayro_cmap::load_embedded),
        }
    }
}

impl<'a> Fonts<'a> {
    fn of(&self, dict: &Dict<'a>) -> Option<Font<'a>> {
        self.cache.font(dict, &self.resolver, &self.cmaps)
    }

    /// For text whose font is not there.
    fn any(&self) -> Option<Font<'a>> {
        self.cache.standard_font(StandardFont::Helvetica, &self.resolver)
    }
}

/// One page under way.
pub(super) struct Interpreter<'f, 'a> {
    fonts: &'f Fonts<'a>,
    work: &'f Work,
    layout: Layout,
    state: State<'a>,
    marked: Marked,
    depth: usize,
}

impl<'f, 'a> Interpreter<'f, 'a> {
    /// Finds no more text than there is room for, and does no more work than is left.
    pub(super) fn new(fonts: &'f Fonts<'a>, work: &'f Work, room: usize) -> Self {
        let state = State::new(Affine::IDENTITY);
        Self { fonts, work, layout: Layout::new(room), state, marked: Marked::default(), depth: 0 }
    }

    pub(super) fn page(&mut self, page: &Page<'a>) {
        self.run(page.typed_operations(), page.resources());
    }

    /// Something that is drawn apart from the page's own content.
    pub(super) fn part(&mut self, stream: &Stream<'a>, place: Affine) {
        self.layout.part();
        self.state = State::new(place);
        self.form(stream, None);
    }

    /// The text, and whether there was more.
    pub(super) fn finish(self) -> (String, bool) {
        let (text, is_cut) = self.layout.finish();
        (text, is_cut || self.work.is_over())
    }

    /// Whether nothing more is read.
    fn is_over(&self) -> bool {
        self.layout.is_full() || self.work.is_over()
    }

    fn run(&mut self, mut operations: TypedIter<'_>, resources: &Resources<'a>) {
        let mut saved: Vec<State<'a>> = Vec::new();
        while let Some(instruction) = operations.next() {
            self.work.step();
            if self.is_over() {
                return;
            }
            match instruction {
                TypedInstruction::SaveState(_) if saved.len() < MOST_SAVED => saved.push(self.state.clone()),
                TypedInstruction::RestoreState(_) => {
                    if let Some(state) = saved.pop() {
                        self.state = state;
                    }
                }
                TypedInstruction::Transform(op) => self.state.ctm *= affine([op.0, op.1, op.2, op.3, op.4, op.5]),
                TypedInstruction::XObject(op) => self.draw(op.0, resources),
                TypedInstruction::SetGraphicsState(op) => self.set_parameters(op.0, resources),
                TypedInstruction::BeginMarkedContent(_) => self.marked.begin(None, resources),
                TypedInstruction::BeginMarkedContentWithProperties(op) => self.marked.begin(Some(op.1), resources),
                TypedInstruction::EndMarkedContent(_) => self.marked.end(),
                other => self.text_operator(&other, resources),
            }
        }
    }

    fn text_operator(&mut self, instruction: &TypedInstruction<'_, '_>, resources: &Resources<'a>) {
        let state = &mut self.state;
        match instruction {
            TypedInstruction::BeginText(_) => state.set_matrix(Affine::IDENTITY),
            TypedInstruction::SetTextMatrix(op) => {
                state.set_matrix(affine([op.0, op.1, op.2, op.3, op.4, op.5]));
            }
            TypedInstruction::CharacterSpacing(op) => state.char_space = op.0.as_f64(),
            TypedInstruction::WordSpacing(op) => state.word_space = op.0.as_f64(),
            TypedInstruction::HorizontalScaling(op) => state.stretch = op.0.as_f64() / 100.0,
            TypedInstruction::TextLeading(op) => state.leading = op.0.as_f64(),
            TypedInstruction::TextRise(op) => state.rise = op.0.as_f64(),
            TypedInstruction::TextFont(op) => {
                state.size = op.1.as_f64();
                let font = resources.get_font(op.0);
                state.font = font.and_then(|dict| self.fonts.of(&dict)).or_else(|| self.fonts.any());
            }
            TypedInstruction::NextLine(op) => state.next_line(op.0.as_f64(), op.1.as_f64()),
            TypedInstruction::NextLineAndSetLeading(op) => {
                state.leading = -op.1.as_f64();
                state.next_line(op.0.as_f64(), op.1.as_f64());
            }
            TypedInstruction::NextLineUsingLeading(_) => state.next_line(0.0, -state.leading),
            TypedInstruction::ShowText(op) => self.show(op.0.as_bytes()),
            TypedInstruction::ShowTexts(op) => self.show_all(op.0),
            TypedInstruction::NextLineAndShowText(op) => {
                state.next_line(0.0, -state.leading);
                self.show(op.0.as_bytes());
            }
            TypedInstruction::ShowTextWithParameters(op) => {
                (state.word_space, state.char_space) = (op.0.as_f64(), op.1.as_f64());
                state.next_line(0.0, -state.leading);
                self.show(op.2.as_bytes());
            }
            _ => {}
        }
    }

    /// `Do`: a form is run, an image is passed over.
    fn draw(&mut self, name: &Name<'_>, resources: &Resources<'a>) {
        let Some(stream) = resources.get_x_object(name) else { return };
        let subtype = stream.dict().get::<Name<'_>>("Subtype");
        if subtype.is_some_and(|subtype| &*subtype == b"Form") {
            self.form(&stream, Some(resources));
        }
    }

    fn form(&mut self, stream: &Stream<'a>, outer: Option<&Resources<'a>>) {
        if self.depth >= DEEPEST || self.is_over() {
            return;
        }
        let Ok(content) = stream.decoded_data() else { return self.work.form(0) };
        self.work.form(content.len());
        let own = stream.dict().get::<Dict<'a>>("Resources").map(Resources::new);
        let none = Resources::new(Dict::default());
        let resources = own.as_ref().or(outer).unwrap_or(&none);
        let before = self.state.clone();
        if let Some(matrix) = stream.dict().get::<[f32; 6]>("Matrix") {
            self.state.ctm *= Affine::new(matrix.map(f64::from));
        }
        self.depth += 1;
        self.run(TypedIter::new(&content), resources);
        self.depth -= 1;
        self.state = before;
    }

    /// `gs`, as far as it is about text.
    fn set_parameters(&mut self, name: &Name<'_>, resources: &Resources<'a>) {
        let font = resources.get_ext_g_state(name).and_then(|parameters| parameters.get::<Array<'a>>("Font"));
        let Some(mut font) = font.map(|font| font.flex_iter()) else { return };
        let (Some(dict), Some(size)) = (font.next::<Dict<'a>>(), font.next::<f32>()) else { return };
        self.state.size = size.into();
        self.state.font = self.fonts.of(&dict).or_else(|| self.fonts.any());
    }

    /// `TJ`: strings, and how far apart they are.
    fn show_all(&mut self, parts: &Array<'_>) {
        for part in parts.iter::<Object<'_>>() {
            match part {
                Object::String(text) => self.show(text.as_bytes()),
                Object::Number(by) => {
                    let is_horizontal = self.state.font.as_ref().is_none_or(Font::is_horizontal);
                    self.state.adjust(by.as_f64(), is_horizontal);
                }
                _ => {}
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        let Some(font) = self.state.font.clone().or_else(|| self.fonts.any()) else { return };
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            self.work.step();
            let (code, length) = font.read_code(bytes, at);
            at += length.max(1);
            let before = self.state.glyph_transform();
            let is_horizontal = font.is_horizontal();
            self.state.advance(font.code_advance(code), is_horizontal, length == 1 && code == 32);
            let after = self.state.glyph_transform();
            let (origin, end, top) = (before * Point::ZERO, after * Point::ZERO, before * Point::new(0.0, 1.0));
            let text = self.marked.actual().unwrap_or_else(|| meaning(&font, code));
            self.layout.glyph(&text, Placed { origin, end, size: (top - origin).hypot() });
        }
    }
}

/// What a character code stands for.
fn meaning(font: &Font<'_>, code: u32) -> String {
    // What a code means does not depend on the glyph that it is drawn with.
    let unicode = match font.glyph(GlyphId::NOTDEF, code) {
        FontGlyph::Outline(glyph) => glyph.as_unicode(),
        FontGlyph::Type3(glyph) => glyph.as_unicode(),
    };
    match unicode {
        Some(BfString::Char(character)) => character.into(),
        Some(BfString::String(text)) => text,
        None => char::REPLACEMENT_CHARACTER.into(),
    }
}

fn affine(numbers: [Number; 6]) -> Affine {
    Affine::new(numbers.map(|number| number.as_f64()))
}
