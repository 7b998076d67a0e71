//! A disk that keeps what was synced, and of the rest what chance leaves.
//!
//! Names are kept by syncing their folder, contents by syncing their file. After a sync of a file that failed, what it
//! was to keep is lost for good: the system may have thrown it away, and another sync says nothing about it. Names are
//! in a file system's own journal; for them another sync is another chance.

use std::collections::{BTreeMap, HashMap};

use super::chance::Chance;
use super::trace::Event;

const SECTOR: usize = 512;

/// What a power cut leaves of what was not synced.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    /// Nothing.
    Dropped,
    /// Any part of it, in any order, sector by sector.
    Scattered,
    /// All of it, but the last write only in part.
    Torn,
}

#[derive(Default)]
pub(super) struct Disk {
    files: Vec<File>,
    /// What a process sees, and what is kept.
    seen: BTreeMap<String, Node>,
    kept: BTreeMap<String, Node>,
    /// Names given and taken since their folder was synced.
    names: Vec<(String, Option<Node>)>,
    /// How much a sync that is under way will keep, by its path.
    syncing: HashMap<String, usize>,
    changes: usize,
}

#[derive(Clone, Copy)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Default)]
struct File {
    kept: Vec<u8>,
    pending: Vec<Change>,
}

struct Change {
    number: usize,
    what: What,
}

enum What {
    Write(usize, Vec<u8>),
    Resize(usize),
}

impl Disk {
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Folder(path) => self.name(path, Some(Node::Folder)),
            // An open that creates only what is not there.
            Event::Created(path) if !self.seen.contains_key(&path) => {
                self.files.push(File::default());
                self.name(path, Some(Node::File(self.files.len() - 1)));
            }
            Event::Created(_) | Event::Ledger(_) => {}
            Event::Removed(path) => self.name(path, None),
            Event::Written { path, at, data } => self.change(&path, What::Write(at, data)),
            Event::Resized { path, size } => self.change(&path, What::Resize(size)),
            Event::SyncBegun(path) => {
                let covered = match self.seen.get(&path) {
                    Some(Node::File(file)) => self.files[*file].pending.len(),
                    _ => self.names.len(),
                };
                self.syncing.insert(path, covered);
            }
            Event::SyncEnded { path, done } => self.synced(&path, done),
        }
    }

    fn name(&mut self, path: String, node: Option<Node>) {
        match node {
            Some(node) => self.seen.insert(path.clone(), node),
            None => self.seen.remove(&path),
        };
        self.names.push((path, node));
    }

    fn change(&mut self, path: &str, what: What) {
        self.changes += 1;
        let Some(Node::File(file)) = self.seen.get(path) else { panic!("a write to {path}, which nobody made") };
        self.files[*file].pending.push(Change { number: self.changes, what });
    }

    fn synced(&mut self, path: &str, done: bool) {
        let covered = self.syncing.remove(path).unwrap();
        if let Some(Node::File(file)) = self.seen.get(path) {
            let File { kept, pending } = &mut self.files[*file];
            for change in pending.drain(..covered).filter(|_| done) {
                change.what.apply_to(kept, |_| true);
            }
            return;
        }
        let (covered, later) = (self.names.drain(..covered).collect::<Vec<_>>(), std::mem::take(&mut self.names));
        for (name, node) in covered {
            if done && folder(&name) == path {
                keep(&mut self.kept, name, node);
            } else {
                self.names.push((name, node));
            }
        }
        self.names.extend(later);
    }

    /// Files and folders after a power cut at this moment.
    pub(super) fn after(&self, cut: Cut, chance: &mut Chance) -> Vec<(String, Option<Vec<u8>>)> {
        let mut names = self.kept.clone();
        for (name, node) in &self.names {
            if stays(cut, chance) {
                keep(&mut names, name.clone(), *node);
            }
        }
        let last = self.files.iter().filter_map(|file| file.pending.last()).map(|change| change.number).max();
        let reachable = |name: &str| {
            std::iter::successors(Some(folder(name)), |path| Some(folder(path)))
                .take_while(|path| !path.is_empty())
                .all(|path| names.contains_key(path))
        };
        let found = names.iter().filter(|(name, _)| reachable(name));
        found
            .map(|(name, node)| match node {
                Node::Folder => (name.clone(), None),
                Node::File(file) => (name.clone(), Some(self.files[*file].after(cut, last, chance))),
            })
            .collect()
    }
}

impl File {
    fn after(&self, cut: Cut, last: Option<usize>, chance: &mut Chance) -> Vec<u8> {
        let mut content = self.kept.clone();
        for change in &self.pending {
            if !stays(cut, chance) {
                continue;
            }
            let sectors = change.what.len().div_ceil(SECTOR);
            let torn_at = if Some(change.number) == last { chance.below(sectors.max(1)) } else { sectors };
            match cut {
                Cut::Scattered if chance.below(4) == 0 => change.what.apply_to(&mut content, |_| chance.below(2) == 0),
                Cut::Torn => change.what.apply_to(&mut content, |sector| sector < torn_at),
                _ => change.what.apply_to(&mut content, |_| true),
            }
        }
        content
    }
}

impl What {
    fn len(&self) -> usize {
        if let Self::Write(_, data) = self { data.len() } else { 0 }
    }

    /// Only those sectors of a write that are wanted.
    fn apply_to(&self, content: &mut Vec<u8>, mut wanted: impl FnMut(usize) -> bool) {
        match self {
            Self::Resize(size) => content.resize(*size, 0),
            Self::Write(at, data) => {
                for (sector, data) in data.chunks(SECTOR).enumerate().filter(|(sector, _)| wanted(*sector)) {
                    let start = at + sector * SECTOR;
                    content.resize(content.len().max(start + data.len()), 0);
                    content[start..start + data.len()].copy_from_slice(data);
                }
            }
        }
    }
}

fn keep(names: &mut BTreeMap<String, Node>, name: String, node: Option<Node>) {
    match node {
        Some(node) => names.insert(name, node),
        None => names.remove(&name),
    };
}

fn stays(cut: Cut, chance: &mut Chance) -> bool {
    match cut {
        Cut::Dropped => false,
        Cut::Scattered => chance.below(2) == 0,
        Cut::Torn => true,
    }
}

/// The folder of a path; the root's is the root.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[test]
fn only_what_was_synced_is_kept() {
    let mut disk = Disk::default();
    let (mut chance, path) = (Chance::new(1), || "d/f".to_owned());
    let write = |at, text: &str| Event::Written { path: path(), at, data: text.as_bytes().to_vec() };
    let sync = |path: &str, done| [Event::SyncBegun(path.to_owned()), Event::SyncEnded { path: path.to_owned(), done }];
    let after = |disk: &Disk, chance: &mut Chance| {
        let found = disk.after(Cut::Dropped, chance).into_iter();
        found.map(|(name, data)| format!("{name}:{}", String::from_utf8(data.unwrap_or_default()).unwrap())).collect()
    };
    let mut steps = |events: Vec<Event>, expected: &[&str]| {
        for event in events {
            disk.apply(event);
        }
        let found: Vec<String> = after(&disk, &mut chance);
        assert_eq!(found, expected);
    };
    steps(vec![Event::Folder("d".into()), Event::Created(path()), write(0, "one")], &[]);
    steps(sync("d/f", true).into(), &[]);
    steps(sync("d", true).into(), &[]);
    steps(sync("", true).into(), &["d:", "d/f:one"]);
    // What a failed sync was to keep is not kept by the next one.
    steps(
        vec![write(3, "two")].into_iter().chain(sync("d/f", false)).chain(sync("d/f", true)).collect(),
        &["d:", "d/f:one"],
    );
    // What is written while a sync is under way waits for another.
    let [begun, ended] = sync("d/f", true);
    steps(vec![write(0, "ONE"), begun, write(4, "!"), ended, Event::Removed(path())], &["d:", "d/f:ONE"]);
    steps(sync("d", true).into(), &["d:"]);
}
