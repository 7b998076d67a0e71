//! What a process did to a folder, in order, as strace saw it.
//!
//! A call counts as late as it may and a promise as early: a write is there when its call has ended, a sync covers what
//! was there when its call began, and something is acknowledged when saying so begins.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Paths are relative to the folder.
#[derive(Debug)]
pub(super) enum Event {
    Folder(String),
    Created(String),
    Removed(String),
    Written {
        path: String,
        at: usize,
        data: Vec<u8>,
    },
    Resized {
        path: String,
        size: usize,
    },
    SyncBegun(String),
    SyncEnded {
        path: String,
        done: bool,
    },
    /// A line of the ledger.
    Ledger(String),
}

/// The calls that the replay knows, or must hear of to say that it does not.
pub(super) const CALLS: &str = "openat,open,creat,mkdir,mkdirat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,\
                                truncate,fallocate,fsync,fdatasync,sync_file_range,unlink,unlinkat,rmdir,rename,\
                                renameat,renameat2,link,linkat,symlink,symlinkat,copy_file_range,sendfile";

/// Reads the output of `strace -f -y -xx -s BIG -e trace=CALLS`.
pub(super) fn read(trace: &Path, folder: &Path) -> Vec<Event> {
    let mut reader = Reader { root: format!("{}/", folder.display()), events: Vec::new(), unfinished: HashMap::new() };
    for line in BufReader::new(File::open(trace).unwrap()).lines() {
        reader.line(&line.unwrap());
    }
    reader.events
}

struct Reader {
    root: String,
    events: Vec<Event>,
    /// By process: the call and its arguments.
    unfinished: HashMap<String, (String, String)>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let (process, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            return;
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let (call, arguments) = self.unfinished.remove(process).unwrap();
            let (_, tail) = resumed.split_once("resumed>").unwrap();
            self.ended(&call, &format!("{arguments}{tail}"));
            return;
        }
        let (call, tail) = rest.split_once('(').unwrap();
        if let Some(arguments) = tail.strip_suffix(" <unfinished ...>") {
            self.began(call, arguments);
            self.unfinished.insert(process.to_owned(), (call.to_owned(), arguments.to_owned()));
        } else {
            self.began(call, tail);
            self.ended(call, tail);
        }
    }

    fn began(&mut self, call: &str, arguments: &str) {
        match call {
            "fsync" | "fdatasync" => self.about(arguments, Event::SyncBegun),
            "write" => {
                let mut arguments = arguments.splitn(3, ", ");
                if self.descriptor(arguments.next().unwrap()).as_deref() == Some("ledger") {
                    let text = String::from_utf8(quoted(arguments.next().unwrap())).unwrap();
                    self.events.push(Event::Ledger(text.trim().to_owned()));
                }
            }
            _ => {}
        }
    }

    /// `text` is `ARGUMENTS) = RESULT`.
    fn ended(&mut self, call: &str, text: &str) {
        let mut ends = text.match_indices(')').map(|(at, _)| (&text[..at], text[at + 1..].trim_start()));
        let Some((arguments, result)) = ends.find_map(|(head, tail)| Some((head, tail.strip_prefix("= ")?))) else {
            // The end of the process cut it off.
            return;
        };
        let done = !result.starts_with('-') && !result.starts_with('?');
        if matches!(call, "fsync" | "fdatasync") {
            return self.about(arguments, |path| Event::SyncEnded { path, done });
        }
        if !done {
            return;
        }
        let parts: Vec<&str> = arguments.split(", ").collect();
        let number = |index: usize| -> usize { parts[index].parse().unwrap() };
        match call {
            "openat" if parts[2].contains("O_CREAT") => self.at(parts[1], Event::Created),
            "mkdir" => self.at(parts[0], Event::Folder),
            "unlink" | "rmdir" => self.at(parts[0], Event::Removed),
            "pwrite64" => {
                let (at, written) = (number(3), result.split(' ').next().unwrap().parse().unwrap());
                self.about(parts[0], |path| {
                    let mut data = quoted(parts[1]);
                    data.truncate(written);
                    Event::Written { path, at, data }
                });
            }
            "ftruncate" => self.about(parts[0], |path| Event::Resized { path, size: number(1) }),
            "openat" => {}
            _ => {
                let ours = parts.iter().find_map(|part| self.descriptor(part).or_else(|| self.path(part)));
                let harmless = ours.as_deref().is_none_or(|path| path == "ledger");
                assert!(harmless, "a call that the replay does not know: {call} on {ours:?}");
            }
        }
    }

    fn about(&mut self, descriptor: &str, event: impl FnOnce(String) -> Event) {
        if let Some(path) = self.descriptor(descriptor) {
            self.events.push(event(path));
        }
    }

    fn at(&mut self, path: &str, event: impl FnOnce(String) -> Event) {
        if let Some(path) = self.path(path) {
            self.events.push(event(path));
        }
    }

    /// The path of `5<\x2f…>`, if it is below our folder and not deleted.
    fn descriptor(&self, text: &str) -> Option<String> {
        let (_, path) = text.split_once('<')?;
        let (path, rest) = path.split_once('>')?;
        if rest.starts_with("(deleted)") { None } else { self.below(&unescaped(path)) }
    }

    fn path(&self, text: &str) -> Option<String> {
        text.starts_with('"').then(|| self.below(&quoted(text))).flatten()
    }

    fn below(&self, path: &[u8]) -> Option<String> {
        let path = std::str::from_utf8(path).ok()?;
        if path == self.root.trim_end_matches('/') {
            return Some(String::new());
        }
        path.strip_prefix(&self.root).map(str::to_owned)
    }
}

fn quoted(text: &str) -> Vec<u8> {
    assert!(!text.ends_with("..."), "strace was told to cut strings off");
    unescaped(text.trim_matches('"'))
}

/// `\x2f\x74` as bytes.
fn unescaped(text: &str) -> Vec<u8> {
    let digit = |byte: u8| if byte.is_ascii_digit() { byte - b'0' } else { byte - b'a' + 10 };
    text.as_bytes().chunks_exact(4).map(|hex| digit(hex[2]) << 4 | digit(hex[3])).collect()
}

#[test]
fn calls_are_read_as_late_as_they_may_and_promises_as_early() {
    let hex = |text: &str| text.bytes().fold(String::new(), |hex, byte| format!("{hex}\\x{byte:02x}"));
    let lines = [
        format!("7 pwrite64(5<{}>, \"{}\", 2, 16 <unfinished ...>", hex("/f/s.db"), hex("hi")),
        format!("8 fdatasync(6<{}> <unfinished ...>", hex("/f/s.db")),
        "7 <... pwrite64 resumed>)        = 2".to_owned(),
        format!("9 write(3<{}>, \"{}\", 3) = 3", hex("/f/ledger"), hex("! 1\n")),
        "8 <... fdatasync resumed>)       = -1 EIO (Input/output error) (INJECTED)".to_owned(),
        format!("7 openat(AT_FDCWD<{}>, \"{}\", O_RDWR|O_CREAT, 0600) = 4<x>", hex("/"), hex("/f/new")),
        format!("7 openat(AT_FDCWD<{}>, \"{}\", O_RDWR|O_CREAT, 0600) = 4<x>", hex("/"), hex("/g/new")),
        "7 +++ killed by SIGKILL +++".to_owned(),
    ];
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    let events = format!("{:?}", read(file.path(), Path::new("/f")));
    let expected = r#"[SyncBegun("s.db"), Written { path: "s.db", at: 16, data: [104, 105] }, Ledger("! 1"), "#;
    assert_eq!(events, format!(r#"{expected}SyncEnded {{ path: "s.db", done: false }}, Created("new")]"#));
}
