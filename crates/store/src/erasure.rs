//! What a deletion erases: the response's own items, except those that somebody else owns too.
//!
//! A client that resends everything makes each of its responses the owner of the whole list, so an item lives until
//! the last response that was sent it is deleted. Owners are looked for in all branches that share the place. One that
//! expired owns its items as long as a living response continues it, since its history has them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::rows::gone;

/// A segment below the first one that the deleted response has a part in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) id: i64,
    pub(crate) parent: Option<i64>,
    /// Its first place; those before are its parent's.
    pub(crate) start: i64,
    /// A conversation owns all of it.
    pub(crate) conversation: bool,
}

/// A response that owns `own..upto` along the path of its segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) segment: i64,
    pub(crate) own: i64,
    pub(crate) upto: i64,
}

/// A response that was not deleted, and what it continues.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) owner: Owner,
    pub(crate) id: String,
    pub(crate) previous: Option<String>,
    pub(crate) gone: i64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Erasure {
    /// Items to erase.
    pub(crate) erase: Vec<(i64, Range<i64>)>,
    /// Segments, and the place from which nothing of them may be shared by later requests: they come after a hole.
    pub(crate) unshare: Vec<(i64, i64)>,
}

/// Those who live, and those who expired and are continued by them.
pub(crate) fn owners(candidates: Vec<Candidate>) -> Vec<Owner> {
    let (living, expired): (Vec<Candidate>, Vec<Candidate>) =
        candidates.into_iter().partition(|candidate| candidate.gone == gone::LIVE);
    let mut expired: HashMap<String, Candidate> = expired.into_iter().map(|row| (row.id.clone(), row)).collect();
    let mut owners = Vec::with_capacity(living.len());
    for candidate in living {
        let mut next = Some(candidate);
        while let Some(candidate) = next {
            owners.push(candidate.owner);
            next = candidate.previous.and_then(|previous| expired.remove(&previous));
        }
    }
    owners
}

/// `tree` holds `victim`'s segments from the one with its first own item on, and everything below those.
pub(crate) fn erasure(mut tree: Vec<Segment>, owners: &[Owner], victim: Owner) -> Erasure {
    // A parent is always older than its branches.
    tree.sort_unstable_by_key(|segment| segment.id);
    let path = path(&tree, victim);
    let shared = shared(&tree, &path);
    let shared = |segment: i64| shared.get(&segment).copied().unwrap_or(0);
    let conversations = tree.iter().filter(|segment| segment.conversation);
    let conversations = conversations.map(|segment| Owner { segment: segment.id, own: 0, upto: i64::MAX });
    let kept = owners.iter().copied().chain(conversations);
    let mut kept: Vec<Range<i64>> =
        kept.map(|owner| owner.own..owner.upto.min(shared(owner.segment))).filter(|range| !range.is_empty()).collect();
    kept.sort_unstable_by_key(|range| range.start);
    let doomed = subtract(victim.own..victim.upto, &kept);
    let Some(first) = doomed.first().map(|range| range.start) else { return Erasure::default() };
    let mut erasure = Erasure::default();
    for (segment, places) in path {
        let within = |range: &Range<i64>| range.start.max(places.start)..range.end.min(places.end);
        let ranges = doomed.iter().map(within).filter(|range| !range.is_empty());
        erasure.erase.extend(ranges.map(|range| (segment, range)));
    }
    let after_hole = tree.iter().filter(|segment| shared(segment.id) > first);
    erasure.unshare = after_hole.map(|segment| (segment.id, first)).collect();
    erasure
}

/// The victim's segments, each with the places that it contributes.
fn path(tree: &[Segment], victim: Owner) -> BTreeMap<i64, Range<i64>> {
    let mut path = BTreeMap::new();
    let (mut next, mut end) = (Some(victim.segment), victim.upto);
    // From the newest on, so each parent comes after its branch.
    for segment in tree.iter().rev() {
        if next == Some(segment.id) {
            path.insert(segment.id, segment.start..end);
            (next, end) = (segment.parent, segment.start);
        }
    }
    path
}

/// For each segment, up to which place its list is the victim's list.
fn shared(tree: &[Segment], path: &BTreeMap<i64, Range<i64>>) -> HashMap<i64, i64> {
    let mut shared = HashMap::with_capacity(tree.len());
    for segment in tree {
        let upto = match (path.get(&segment.id), segment.parent) {
            (Some(places), _) => places.end,
            (None, Some(parent)) if path.contains_key(&parent) => {
                segment.start.min(shared.get(&parent).copied().unwrap_or(0))
            }
            (None, Some(parent)) => shared.get(&parent).copied().unwrap_or(0),
            (None, None) => 0,
        };
        shared.insert(segment.id, upto);
    }
    shared
}

/// What of `range` is in none of `kept`, which is sorted by its beginnings.
fn subtract(range: Range<i64>, kept: &[Range<i64>]) -> Vec<Range<i64>> {
    let mut left = Vec::new();
    let mut at = range.start;
    for kept in kept {
        if kept.start > at {
            left.push(at..kept.start.min(range.end));
        }
        at = at.max(kept.end);
    }
    left.push(at..range.end);
    left.retain(|range| !range.is_empty());
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(id: i64, parent: Option<i64>, start: i64) -> Segment {
        Segment { id, parent, start, conversation: false }
    }

    #[test]
    fn a_chained_child_does_not_keep_its_ancestors_items_but_a_resending_one_does() {
        let tree = vec![segment(1, None, 0)];
        let victim = Owner { segment: 1, own: 0, upto: 2 };
        let chained = Owner { segment: 1, own: 2, upto: 4 };
        assert_eq!(erasure(tree.clone(), &[chained], victim).erase, [(1, 0..2)]);
        let resent = Owner { segment: 1, own: 0, upto: 4 };
        assert_eq!(erasure(tree, &[chained, resent], victim), Erasure::default());
    }

    #[test]
    fn who_expired_owns_through_the_living_that_continue_it() {
        let row = |place: i64, id: &str, previous: Option<&str>, gone| Candidate {
            owner: Owner { segment: 1, own: place, upto: place + 1 },
            id: id.to_owned(),
            previous: previous.map(str::to_owned),
            gone,
        };
        // 0 ← 1 ← 2 lives; 3 is continued by nobody; 5 only through one that was deleted.
        let rows = vec![
            row(0, "0", None, gone::EXPIRED),
            row(1, "1", Some("0"), gone::EXPIRED),
            row(2, "2", Some("1"), gone::LIVE),
            row(3, "3", Some("1"), gone::EXPIRED),
            row(5, "5", None, gone::EXPIRED),
            row(6, "6", Some("deleted"), gone::LIVE),
        ];
        let mut places: Vec<i64> = owners(rows).into_iter().map(|owner| owner.own).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 6]);
    }

    #[test]
    fn a_branch_keeps_only_what_it_shares() {
        // 1: places 0..4; 2 leaves it at 1 and resends from 0.
        let tree = vec![segment(1, None, 0), segment(2, Some(1), 1), segment(3, Some(1), 3)];
        let victim = Owner { segment: 1, own: 0, upto: 4 };
        let branch = Owner { segment: 2, own: 0, upto: 5 };
        let erased = erasure(tree, &[branch], victim);
        assert_eq!(erased.erase, [(1, 1..4)]);
        // The branch at 1 has no hole before it, the one at 3 has.
        assert_eq!(erased.unshare, [(1, 1), (3, 1)]);
    }

    #[test]
    fn own_items_reach_over_segments_and_a_conversation_keeps_its_own() {
        let tree = vec![segment(1, None, 0), segment(2, Some(1), 3)];
        let victim = Owner { segment: 2, own: 1, upto: 5 };
        assert_eq!(erasure(tree, &[], victim).erase, [(1, 1..3), (2, 3..5)]);
        let tree = vec![Segment { conversation: true, ..segment(1, None, 0) }, segment(2, Some(1), 3)];
        assert_eq!(erasure(tree, &[], victim).erase, [(2, 3..5)]);
    }

    #[test]
    fn what_is_left_of_a_range() {
        assert_eq!(subtract(0..10, &[1..2, 1..4, 6..7, 20..30]), [0..1, 4..6, 7..10]);
        assert_eq!(subtract(5..10, &[0..3, 4..6]), vec![6..10; 1]);
        assert!(subtract(0..4, &[0..2, 1..9]).is_empty());
    }
}
