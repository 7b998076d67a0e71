//! The text of PDF files, page by page, and the form in which the process that reads them tells it to the one that asked.
//! No I/O. A hostile file may take any time and memory here, or the whole process down: whoever calls [`read`] runs in a
//! process of its own, with limits, and does nothing else.
#![forbid(unsafe_code)]

mod message;
#[cfg(feature = "reader")]
mod reader;

#[cfg(feature = "reader")]
pub use reader::read;

/// Whether this build reads PDFs.
pub const CAN_READ: bool = cfg!(feature = "reader");

/// What is read of a file at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub pages: usize,
    /// Of text, over all pages.
    pub bytes: usize,
    /// Of work, over all pages: about one for each operator and each glyph, more for each form that is drawn. So a small
    /// file that draws the same things over and over ends with what it has said until then, and at the same place on
    /// every machine.
    pub steps: u64,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The text of each page, from the first; empty where a page has none.
    pub pages: Vec<String>,
    /// How many pages the file has.
    pub of: usize,
    /// The text of the last page is not all of it.
    pub cut: bool,
}

impl Reading {
    /// All of it, with a mark before each page.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.pages.iter().map(|page| page.len() + 16).sum());
        for (index, page) in self.pages.iter().enumerate() {
            out.push_str(if index == 0 { "[page " } else { "\n[page " });
            out.push_str(&(index + 1).to_string());
            out.push_str(if page.is_empty() { ": no text]" } else { "]\n" });
            out.push_str(page);
        }
        out
    }
}

/// Why nothing was read of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It needs a password.
    Encrypted,
    /// It is no PDF, or too broken.
    Damaged,
    /// There is no text on its pages, as with scanned paper.
    NoText,
    /// There was no text in as many steps as it may take.
    Limits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_marked() {
        let reading =
            |pages: &[&str]| Reading { pages: pages.iter().map(|&page| page.into()).collect(), ..Reading::default() };
        for (pages, expected) in [
            (&[][..], ""),
            (&["a\nb"], "[page 1]\na\nb"),
            (&["a", "", "c"], "[page 1]\na\n[page 2: no text]\n[page 3]\nc"),
        ] {
            assert_eq!(reading(pages).text(), expected);
        }
    }
}
