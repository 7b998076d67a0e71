//! The members of an object, each name once, with what becomes of each.

use std::borrow::Cow;
use std::collections::BTreeSet;

use wire::json::{Cursor, ObjectWriter, Raw};

use super::fate::{Fate, Loss};
use crate::plan::json;

#[derive(Debug)]
pub(super) struct Members<'s> {
    list: Vec<Member<'s>>,
    /// Names were left out or are others.
    is_rewritten: bool,
    /// What was lost with members that others have replaced.
    lost: Loss,
}

#[derive(Debug)]
struct Member<'s> {
    name: Cow<'s, str>,
    value: Raw<'s>,
    fate: Fate,
}

impl<'s> Members<'s> {
    /// Reads an object. Of those with the same name the last one counts, as everywhere; all others go.
    pub(super) fn read(cursor: &mut Cursor<'s>, mut fate: impl FnMut(&str, &mut Cursor<'s>) -> Fate) -> Self {
        let mut list = Vec::new();
        cursor.enter();
        while let Some(key) = cursor.key() {
            let name = key.decode();
            let start = cursor.start();
            let fate = fate(&name, cursor);
            list.push(Member { name, value: cursor.since(start), fate });
        }
        let mut known = BTreeSet::new();
        let is_last: Vec<bool> = list.iter().rev().map(|member| known.insert(&*member.name)).collect();
        let is_rewritten = is_last.contains(&false);
        let mut is_last = is_last.into_iter().rev();
        list.retain(|_| is_last.next().unwrap_or(true));
        Self { list, is_rewritten, lost: Loss::Nothing }
    }

    fn member(&mut self, name: &str) -> Option<&mut Member<'s>> {
        self.list.iter_mut().find(|member| member.name == name)
    }

    pub(super) fn value(&self, name: &str) -> Option<Raw<'s>> {
        self.list.iter().find(|member| member.name == name).map(|member| member.value)
    }

    /// Whether there will be a member of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|member| member.name == name && !matches!(member.fate, Fate::Goes(_)))
    }

    /// What is lost with what becomes of a member; nothing where there is none.
    pub(super) fn loss(&self, name: &str) -> Loss {
        self.list.iter().find(|member| member.name == name).map_or(Loss::Nothing, |member| member.fate.loss())
    }

    /// What is lost altogether.
    pub(super) fn whole_loss(&self) -> Loss {
        self.list.iter().map(|member| member.fate.loss()).fold(self.lost, Loss::max)
    }

    pub(super) fn set(&mut self, name: &str, fate: Fate) {
        if let Some(member) = self.member(name) {
            member.fate = fate;
        }
    }

    /// Gives a member another name; one that has it already goes.
    pub(super) fn rename(&mut self, name: &str, new: &'static str) {
        if self.value(name).is_none() {
            return;
        }
        self.lost = self.lost.max(self.loss(new));
        self.list.retain(|member| member.name != new);
        self.is_rewritten = true;
        if let Some(member) = self.member(name) {
            member.name = Cow::Borrowed(new);
        }
    }

    pub(super) fn are_as_they_were(&self) -> bool {
        !self.is_rewritten && self.list.iter().all(|member| member.fate.stays())
    }

    /// What becomes of the object.
    pub(super) fn fate(&self) -> Fate {
        if self.are_as_they_were() {
            return Fate::Stays;
        }
        let text = json::text(|out| {
            let mut object = ObjectWriter::new(out);
            for Member { name, value, fate } in &self.list {
                match fate {
                    Fate::Stays => drop(object.raw(name, *value)),
                    Fate::Goes(_) => {}
                    Fate::Becomes(text, _) => drop(object.json(name, text.as_bytes())),
                }
            }
            object.end();
        });
        Fate::Becomes(text.into(), self.whole_loss())
    }
}
