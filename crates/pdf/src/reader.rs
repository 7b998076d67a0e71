//! Reads a PDF: its pages in their order, each as the text that it shows, in the order in which it is drawn. That is the
//! order of reading nearly everywhere, also in columns; nothing is sorted by its place.

mod annotations;
mod interpreter;
mod layout;
mod marked;
mod state;
mod work;

use hayro_syntax::page::Page;
use hayro_syntax::{LoadPdfError, Pdf};

use crate::{Limits, Reading, Unreadable};
use interpreter::{Fonts, Interpreter};
use work::Work;

/// A file ends with this; a few bytes may come after it.
const END: &[u8] = b"%%EOF";
const NEAR_END: usize = 1 << 10;

/// The text of a file.
///
/// # Errors
/// Nothing can be read of it.
pub fn read(data: Vec<u8>, limits: Limits) -> Result<Reading, Unreadable> {
    let is_whole = ends_well(&data);
    let pdf = Pdf::new(data).map_err(|error| match error {
        LoadPdfError::Decryption(_) => Unreadable::Encrypted,
        LoadPdfError::Invalid => Unreadable::Damaged,
    })?;
    let (fonts, work) = (Fonts::default(), Work::new(limits.steps));
    let mut reading = Reading { of: pdf.pages().len(), ..Reading::default() };
    if reading.of == 0 {
        return Err(Unreadable::Damaged);
    }
    let mut left = limits.bytes;
    for page in pdf.pages().iter().take(limits.pages) {
        let mut interpreter = Interpreter::new(&fonts, &work, left);
        interpreter.page(page);
        annotations::read(&mut interpreter, page);
        let (mut text, cut) = interpreter.finish();
        if is_gibberish(&text) {
            text.clear();
        }
        left = left.saturating_sub(text.len());
        reading.pages.push(text);
        if cut {
            reading.cut = true;
            break;
        }
    }
    if reading.pages.iter().all(String::is_empty) {
        let is_damaged = !is_whole || pdf.pages().iter().take(limits.pages).any(is_lost);
        return Err(match () {
            () if work.is_over() => Unreadable::Limits,
            () if is_damaged => Unreadable::Damaged,
            () => Unreadable::NoText,
        });
    }
    Ok(reading)
}

/// Whether the end of the file is there: of one that was cut off, pages may be found without what is on them.
fn ends_well(data: &[u8]) -> bool {
    let from = data.len().saturating_sub(NEAR_END);
    data.get(from..).is_some_and(|end| end.windows(END.len()).any(|part| part == END))
}

/// Whether a page has content that is not in the file.
fn is_lost(page: &Page<'_>) -> bool {
    page.raw().contains_key("Contents") && page.page_stream().is_none()
}

/// Whether the file does not say what most of its glyphs mean.
fn is_gibberish(text: &str) -> bool {
    let (mut lost, mut all) = (0_usize, 0_usize);
    for character in text.chars().filter(|character| !character.is_whitespace()) {
        all += 1;
        lost += usize::from(character == char::REPLACEMENT_CHARACTER);
    }
    lost * 2 > all
}
