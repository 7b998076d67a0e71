//! What rendezvous hashing promises, for any places and conversations.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn conversation(number: usize) -> Affinity {
    Affinity::of([b"tenant".as_slice(), number.to_string().as_bytes()])
}

fn seats(names: &[String]) -> Vec<Seat> {
    names.iter().map(|name| Seat { place: PlaceId::of(name.as_bytes()), open: 0, share: WHOLE }).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("http://10.0.0.{number}:8000/v1")).collect()
}

/// The name of the place where the conversation goes.
fn chosen(names: &[String], conversation: Affinity) -> &str {
    &names[order(conversation, &seats(names))[0]]
}

#[test]
fn conversations_are_spread_evenly() {
    const EACH: usize = 2000;
    for count in [2, 3, 5, 16] {
        let names = names(count);
        let seats = seats(&names);
        let mut taken = vec![0_usize; count];
        for number in 0..count * EACH {
            taken[order(conversation(number), &seats)[0]] += 1;
        }
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(*least > EACH * 85 / 100 && *most < EACH * 115 / 100, "{count}: {taken:?}");
    }
}

#[test]
fn texts_are_told_apart_by_where_they_end() {
    let of = |texts: &[&str]| Affinity::of(texts.iter().map(|text| text.as_bytes()));
    assert_eq!(of(&["a", "bc"]), of(&["a", "bc"]));
    for other in [&["ab", "c"][..], &["a", "b", "c"], &["abc"], &["a", "bc", ""], &["bc", "a"], &[]] {
        assert_ne!(of(&["a", "bc"]), of(other), "{other:?}");
    }
    assert_ne!(of(&["\0"]), of(&[""]));
    assert_ne!(of(&["\0\0\0\0\0\0\0\0"]), of(&["\0"]));
}

/// What every instance must agree on, also one of another build: the numbers themselves.
#[test]
fn every_build_chooses_alike() {
    let names = names(3);
    let found: Vec<usize> = (0..12).map(|number| order(conversation(number), &seats(&names))[0]).collect();
    assert_eq!(found, [2, 0, 2, 2, 1, 1, 2, 0, 2, 2, 0, 2]);
}

#[test]
fn a_place_that_comes_back_gets_more_and_more_of_its_own() {
    const MANY: usize = 4000;
    let names = names(4);
    let mut seats = seats(&names);
    let home: Vec<usize> = (0..MANY).map(|number| order(conversation(number), &seats)[0]).collect();
    let own = home.iter().filter(|at| **at == 1).count();
    let mut back = vec![false; MANY];
    for share in [0, 100, 300, 700, WHOLE] {
        seats[1].share = share;
        let mut count = 0;
        for (number, (home, back)) in home.iter().zip(&mut back).enumerate() {
            let now = order(conversation(number), &seats)[0];
            assert!(now == *home || *home == 1, "only its own are elsewhere");
            assert!(!*back || now == 1, "who came back stays");
            *back = *home == 1 && now == 1;
            count += usize::from(*back);
        }
        let expected = own * share / WHOLE;
        assert!(count.abs_diff(expected) <= own / 15, "{share}: {count} of {own}");
    }
}

proptest! {
    #[test]
    fn one_more_or_one_less_moves_only_its_own(count in 2_usize..12, gone in 0_usize..12, salt in any::<u32>()) {
        const MANY: usize = 1000;
        let many = names(count);
        let mut fewer = many.clone();
        let gone = fewer.remove(gone % count);
        // The order of the list means nothing.
        fewer.reverse();
        let mut moved = 0;
        for number in 0..MANY {
            let conversation = Affinity::of([&salt.to_le_bytes()[..], &number.to_le_bytes()[..]]);
            let (before, after) = (chosen(&many, conversation), chosen(&fewer, conversation));
            prop_assert!(before == after || before == gone);
            moved += usize::from(before != after);
        }
        let expected = MANY / count;
        prop_assert!(moved.abs_diff(expected) < expected / 4 + 60, "{moved}, not about {expected}");
    }

    /// Whatever conversations come, and whichever end.
    #[test]
    fn nobody_gets_more_than_the_bound(
        count in 1_usize..9,
        steps in vec((0_usize..4, 0_usize..6), 1..400),
        down in 0_usize..9,
    ) {
        let mut seats = seats(&names(count));
        if count > 1 {
            seats[down % count].share = 0;
        }
        let up = seats.iter().filter(|seat| seat.share > 0).count();
        for (number, ending) in steps {
            let all: usize = seats.iter().map(|seat| seat.open).sum();
            let at = order(conversation(number), &seats)[0];
            prop_assert!(seats[at].share > 0);
            seats[at].open += 1;
            let most = FEW.max(((all + 1) * PERCENT).div_ceil(up * 100));
            prop_assert!(seats[at].open <= most, "{} > {most}", seats[at].open);
            if let Some(seat) = seats.iter_mut().filter(|seat| seat.open > 0).nth(ending) {
                seat.open -= 1;
            }
        }
    }

    #[test]
    fn all_are_in_the_order_and_the_same_each_time(
        shares in vec((0_usize..=WHOLE, 0_usize..50), 0..20),
        number in any::<usize>(),
    ) {
        let mut seats = seats(&names(shares.len()));
        for (seat, (share, open)) in seats.iter_mut().zip(shares) {
            (seat.share, seat.open) = (share, open);
        }
        let found = order(conversation(number), &seats);
        prop_assert_eq!(&found, &order(conversation(number), &seats));
        let mut sorted = found.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..seats.len()).collect::<Vec<_>>());
        let first_down = found.iter().position(|at| seats[*at].share == 0).unwrap_or(found.len());
        prop_assert!(found[first_down..].iter().all(|at| seats[*at].share == 0));
    }
}
