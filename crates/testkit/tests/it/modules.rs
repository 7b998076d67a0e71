//! The modules of `server` use each other in one direction only, as the crates do: who is to be read first is always
//! clear. Read from the paths in its sources (`crate::x`, and `super::x` where that is the crate), tests left out; the
//! root itself, `lib.rs`, may use all and is used by all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::source::{self, Source};

/// The cycles that are still there. One that is gone leaves this list, none enters it.
const KNOWN: &[&str] = &[];

/// Who uses whom, and where: for each pair the first place.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn module_graph() {
    let graph = graph(&source::below("crates/server/src"), "crates/server/src/");
    assert!(graph.len() > 10, "{graph:?}");
    let cycles = cycles(&graph);
    let new: Vec<String> = cycles
        .iter()
        .filter(|(cycle, _)| !KNOWN.contains(&cycle.as_str()))
        .map(|(cycle, edges)| format!("{cycle}\n{edges}"))
        .collect();
    let gone: Vec<&&str> = KNOWN.iter().filter(|known| !cycles.contains_key(**known)).collect();
    assert!(new.is_empty(), "modules that use each other:\n{}", new.join(""));
    assert!(gone.is_empty(), "no longer a cycle, take it off the list: {gone:?}");
}

fn graph(sources: &[Source], below: &str) -> Graph {
    let inside = |file: &Source| file.path.to_string_lossy().strip_prefix(below).map(str::to_owned);
    let module = |path: &str| path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
    let names: BTreeSet<String> = sources.iter().filter_map(&inside).map(|path| module(&path)).collect();
    let mut graph = Graph::new();
    for (file, path) in sources.iter().filter_map(|file| Some((file, inside(file)?))) {
        let user = module(&path);
        if user == "lib" {
            continue;
        }
        let uses = graph.entry(user.clone()).or_default();
        for (line, used) in used(file, path.split('/').count()) {
            if used != user && names.contains(&used) {
                uses.entry(used).or_insert_with(|| file.at(line));
            }
        }
    }
    graph
}

/// The names directly below the crate that a file so many folders below its root has paths to, with their lines.
fn used(file: &Source, depth: usize) -> Vec<(usize, String)> {
    let mut text = String::new();
    let mut lines = Vec::new();
    for (number, code) in file.code() {
        lines.resize(text.len() + code.len() + 1, number);
        text.push_str(code);
        text.push('\n');
    }
    let mut found = Vec::new();
    for prefix in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in text.match_indices(&prefix) {
            let before = text[..at].chars().next_back().unwrap_or(' ');
            if !(before.is_alphanumeric() || before == '_' || before == ':' || before == '$') {
                found.extend(heads(&text[at + prefix.len()..]).into_iter().map(|name| (lines[at], name)));
            }
        }
    }
    found
}

/// The first names of a path, or of every path of a group.
fn heads(rest: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let mut found = Vec::new();
    let mut depth = 1;
    let mut start = 0;
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && character == ',' {
            found.push(name(group[start..at].trim_start()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// For every use the shortest way back, if there is one: each such cycle once, with the places of its edges.
fn cycles(graph: &Graph) -> BTreeMap<String, String> {
    let mut cycles = BTreeMap::new();
    for (user, uses) in graph {
        for used in uses.keys() {
            let Some(mut way) = shortest(graph, used, user) else { continue };
            // Begins with the first by name, so that it is the same from wherever it was found.
            let first = (0..way.len()).min_by_key(|at| &way[*at]).unwrap_or_default();
            way.rotate_left(first);
            way.push(way[0].clone());
            let edge = |pair: &[String]| format!("  {} uses {}: {}\n", pair[0], pair[1], graph[&pair[0]][&pair[1]]);
            cycles.insert(way.join(" → "), way.windows(2).map(edge).collect());
        }
    }
    cycles
}

/// From one module to another, both included.
fn shortest(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut queue = VecDeque::from([vec![from.to_owned()]]);
    let mut seen = BTreeSet::from([from.to_owned()]);
    while let Some(way) = queue.pop_front() {
        let last = way.last()?;
        if last == to {
            return Some(way);
        }
        for next in graph.get(last).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next.clone()) {
                queue.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

#[test]
fn paths_and_cycles_are_found() {
    let file = |path: &str, text: &str| Source { path: format!("src/{path}").into(), text: text.to_owned() };
    let sources = [
        file("lib.rs", "use a::A;\nmod a;\n"),
        file("a.rs", "// crate::d\nuse crate::{\n    b::{B, c},\n    Root,\n};\nuse super::c::C;\n"),
        file("a/deep.rs", "use super::super::d::D;\nuse super::e::E;\n"),
        file("b.rs", "fn f() -> crate::c::X {}\n#[cfg(test)]\nuse crate::a::A;\n"),
        file("c.rs", "impl crate::a::T for C {}\n"),
        file("d.rs", ""),
        file("e.rs", ""),
    ];
    let graph = graph(&sources, "src/");
    let uses = |user: &str| graph[user].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((uses("a"), uses("b"), uses("c")), (vec!["b", "c", "d"], vec!["c"], vec!["a"]));
    let cycles = cycles(&graph);
    assert_eq!(cycles.keys().collect::<Vec<_>>(), ["a → b → c → a", "a → c → a"]);
    assert_eq!(cycles["a → c → a"], "  a uses c: src/a.rs:6\n  c uses a: src/c.rs:1\n");
}
