//! The `files` section: what is done about files for models that take none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::key::Keys;
use super::{size, table};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesConfig {
    pub pdf: PdfPolicy,
    /// Pages of a file that are read.
    pub max_pages: usize,
    /// Bytes of text, of one file and of all files of a request.
    pub max_bytes: usize,
    pub max_request_bytes: usize,
    /// What the process that reads a file may take.
    pub timeout: Duration,
    pub memory: u64,
}

/// What becomes of a PDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PdfPolicy {
    /// The model gets its text.
    #[default]
    Text,
    /// It is left out.
    Off,
}

impl PdfPolicy {
    pub const ALL: &'static [Self] = &[Self::Text, Self::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Off => "off",
        }
    }
}

/// What is started to read a PDF: `PROGRAM ARGUMENTS… PAGES BYTES SECONDS MEMORY`. It gets the file on its standard input,
/// and says on its output what `pdf::Reading` has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfProgram {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl PdfProgram {
    pub fn new<A: Into<OsString>>(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    pub(crate) fn parts(&self) -> (&Path, &[OsString]) {
        (&self.program, &self.arguments)
    }
}

pub(super) fn read(keys: &mut Keys<'_>) -> FilesConfig {
    FilesConfig {
        pdf: keys.get(&table::FILES_PDF),
        max_pages: size(keys.get(&table::FILES_MAX_PAGES)),
        max_bytes: size(keys.get(&table::FILES_MAX_BYTES)),
        max_request_bytes: size(keys.get(&table::FILES_MAX_REQUEST_BYTES)),
        timeout: keys.get(&table::FILES_TIMEOUT),
        memory: keys.get(&table::FILES_MEMORY),
    }
}
