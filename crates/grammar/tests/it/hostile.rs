//! Definitions and inputs that are made to cost much: each comes to an end within its limits, whatever that is. Counted
//! is what is allocated, which is counted per thread: the compiler's own thread is bounded by what it leaves behind.

use allocation_counter::measure;
use grammar::{Grammar, Syntax, Verdict, limits};

/// What reading one input may take at the most.
const MOST_BYTES: u64 = 64 << 20;

fn hostile_definitions() -> Vec<(&'static str, Syntax, String)> {
    use Syntax::{Lark, Regex};
    let many = |count: usize, write: &dyn Fn(usize) -> String| (0..count).map(write).collect::<Vec<_>>();
    vec![
        ("ten megabytes", Lark, format!("start: \"{}\"", "a".repeat(10 << 20))),
        ("a huge repetition of a rule", Lark, "start: a{1,1000000}\na: \"x\" | \"y\" \"z\"".to_owned()),
        (
            "repetitions in repetitions",
            Lark,
            "start: a{1,10000}\na: b{1,10000}\nb: c{1,10000}\nc: \"x\"|\"y\"".to_owned(),
        ),
        ("a huge repetition", Regex, "a{1,1000000}".to_owned()),
        ("repetitions in repetitions of a regex", Regex, "((a{1,1000}){1,1000}){1,1000}".to_owned()),
        ("deep brackets", Lark, format!("start: {}\"a\"{}", "(".repeat(10_000), ")".repeat(10_000))),
        ("brackets as deep as may be", Lark, format!("start: {}\"a\"{}", "(".repeat(1_900), ")".repeat(1_900))),
        ("deep brackets of a regex", Regex, format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000))),
        ("a long chain of rules", Lark, chain(3_900, "")),
        ("a long chain of bracketed rules", Lark, chain(60, &"(".repeat(28))),
        ("a long chain of terminals", Lark, chain(3_900, "").to_uppercase().replacen("R0", "start", 1)),
        ("left recursion", Lark, "start: start \"a\" | \"a\"".to_owned()),
        ("right recursion", Lark, "start: \"a\" start | \"a\"".to_owned()),
        ("recursion without an end", Lark, "start: start".to_owned()),
        ("recursion of nothing", Lark, "start: start start | \"\"".to_owned()),
        ("as many ways as there are", Lark, "start: start start | start start start | \"a\"".to_owned()),
        ("loops in loops", Lark, "start: a*\na: b*\nb: c*\nc: \"a\"*".to_owned()),
        ("a catastrophic regex", Regex, "(a+)+b".to_owned()),
        ("a regex of many states", Regex, "(a|b)*a(a|b){20}".to_owned()),
        ("a regex of many more", Regex, "((a|b)*a(a|b){30}|(b|a)*b(a|b){40})&".to_owned()),
        ("all of Unicode, often", Regex, r"\w\W\pL\pN\p{Greek}[^\pL]".repeat(400)),
        (
            "many classes",
            Regex,
            many(3_000, &|at| format!("[{}-\u{10ffff}]", char::from_u32(0x100 + u32::try_from(at).unwrap()).unwrap()))
                .concat(),
        ),
        ("many words", Regex, many(6_000, &|at| format!("w{at}")).join("|")),
        ("many alternatives", Lark, format!("start: {}", many(8_000, &|at| format!("\"{at}\"")).join("|"))),
        ("terminals that are not", Lark, "start: A\nA: ~(/a*/ & ~/(a|b)*a(a|b){12}/)".to_owned()),
        ("no text at all", Regex, "[^\\s\\S]".to_owned()),
        ("no sense", Lark, "\u{0}\u{1}((((%%%///\"".to_owned()),
    ]
}

/// `r0` needs `r1`, which needs `r2`, and so on.
fn chain(count: usize, open: &str) -> String {
    let close = ")".repeat(open.len());
    let rules = (0..count)
        .map(|at| if at + 1 == count { format!("r{at}:\"a\"\n") } else { format!("r{at}:{open}r{}{close}\n", at + 1) });
    rules.collect::<String>().replacen("r0", "start", 1)
}

fn hostile_inputs() -> Vec<String> {
    vec![
        "a".repeat(64 << 20),
        crate::noise(1_000_000),
        format!("{}b", "a".repeat(30_000)),
        "x".repeat(2_000_000),
        String::new(),
    ]
}

#[test]
fn what_is_made_to_cost_much_stays_within_its_limits() {
    let inputs = hostile_inputs();
    let mut usable = 0;
    for (name, syntax, definition) in hostile_definitions() {
        let Ok(grammar) = Grammar::compile(syntax, &definition) else { continue };
        usable += 1;
        assert!(grammar.bytes() < 64 << 20, "{name}: {} bytes", grammar.bytes());
        for input in &inputs {
            let mut verdict = None;
            let used = measure(|| verdict = Some(grammar.check(input)));
            let bytes = used.bytes_max;
            assert!(bytes < MOST_BYTES, "{name}: {bytes} bytes for {} of input", input.len());
            if input.len() > limits::INPUT {
                assert_ne!(verdict, Some(Verdict::Fits), "{name}: more was read than may be");
            }
        }
    }
    assert!(usable >= 10, "only {usable} of them could be compiled: what is tested then?");
}

#[test]
fn what_is_too_large_is_not_compiled() {
    for (name, syntax, definition) in hostile_definitions().into_iter().filter(|(name, ..)| name.contains("ten mega")) {
        let mut found = None;
        let used = measure(|| found = Some(Grammar::compile(syntax, &definition).map(|_| ())));
        assert!(found.unwrap().is_err(), "{name}");
        assert!(used.bytes_total < 1 << 20, "{name}: {used:?}");
    }
}
