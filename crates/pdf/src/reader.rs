//! Reads a PDF: its pages in their order, each as the text that it shows, in the order in which it is drawn. That is the
//! order of reading nearly everywhere, also in columns; nothing is sorted by its place.

mod annotations;
mod interpreter;
mod layout;
mod marked;
mod state;

use hayro_syntax::{LoadPdfError, Pdf};

use crate::{Limits, Reading, Unreadable};
use interpreter::{Fonts, Interpreter};

/// The text of a file.
///
/// # Errors
/// Nothing can be read of it.
pub fn read(data: Vec<u8>, limits: Limits) -> Result<Reading, Unreadable> {
    let pdf = Pdf::new(data).map_err(|error| match error {
        LoadPdfError::Decryption(_) => Unreadable::Encrypted,
        LoadPdfError::Invalid => Unreadable::Damaged,
    })?;
    let fonts = Fonts::default();
    let mut reading = Reading { of: pdf.pages().len(), ..Reading::default() };
    if reading.of == 0 {
        return Err(Unreadable::Damaged);
    }
    let mut left = limits.bytes;
    for page in pdf.pages().iter().take(limits.pages) {
        let mut interpreter = Interpreter::new(&fonts, left);
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
        return Err(Unreadable::NoText);
    }
    Ok(reading)
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
