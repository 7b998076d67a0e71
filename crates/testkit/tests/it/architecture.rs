//! Dependency direction, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use crate::source;

/// Who may use whom, among ours, as normal dependencies. `godex` is the binary and may use all of them.
const MAY_USE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("bridge", &["wire"]),
    ("providers", &["bridge", "wire"]),
    ("schema", &["wire"]),
    ("grammar", &[]),
    ("tokens", &["wire"]),
    ("store", &["wire"]),
    ("probe", &["bridge", "providers", "wire"]),
    ("mcp", &[]),
    ("web", &["providers", "wire"]),
    ("pdf", &[]),
    ("server", &["bridge", "grammar", "mcp", "pdf", "probe", "providers", "schema", "store", "tokens", "web", "wire"]),
    ("godex", &["bridge", "pdf", "probe", "providers", "server", "store", "wire"]),
    ("testkit", &["wire"]),
    ("xtask", &[]),
    ("benches", &[]),
];

/// The crates without I/O, and what they must not reach through any chain of normal dependencies.
const PURE: &[&str] = &["wire", "bridge", "grammar", "pdf", "probe", "providers", "schema", "tokens", "web"];
const IMPURE: &[&str] =
    &["axum", "getrandom", "http", "hyper", "rand", "reqwest", "rusqlite", "rustls", "tokio", "tracing"];

fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        let manifest = testkit::root().join("Cargo.toml");
        // For this platform only: other platforms' packages need not be on this machine.
        let options = ["--locked", "--offline", "--filter-platform", &host()].map(str::to_owned).to_vec();
        MetadataCommand::new().manifest_path(manifest).other_options(options).exec().unwrap()
    })
}

fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

fn name(id: &PackageId) -> &'static str {
    metadata()[id].name.as_str()
}

/// The normal dependencies of every package in the resolved graph.
fn normal() -> BTreeMap<&'static PackageId, Vec<&'static PackageId>> {
    let is_normal = |dep: &&cargo_metadata::NodeDep| dep.dep_kinds.iter().any(|d| d.kind == DependencyKind::Normal);
    let nodes = metadata().resolve.as_ref().unwrap().nodes.iter();
    nodes.map(|node| (&node.id, node.deps.iter().filter(is_normal).map(|dep| &dep.pkg).collect())).collect()
}

fn member(wanted: &str) -> &'static PackageId {
    metadata().workspace_members.iter().find(|id| name(id) == wanted).unwrap()
}

#[test]
fn ours_use_ours_in_one_direction_only() {
    let (graph, ours) = (normal(), &metadata().workspace_members);
    let known: BTreeSet<&str> = MAY_USE.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours.iter().map(name).collect::<BTreeSet<_>>(), known, "a new crate needs its place in the law");
    for (krate, allowed) in MAY_USE {
        let used = graph[member(krate)].iter().filter(|id| ours.contains(id)).map(|id| name(id));
        for used in used {
            assert!(allowed.contains(&used), "{krate} must not use {used}");
        }
    }
}

#[test]
fn testkit_is_for_tests_only() {
    for (id, dependencies) in normal() {
        assert!(!dependencies.iter().any(|dep| name(dep) == "testkit"), "{} uses testkit outside tests", name(id));
    }
}

/// What the tools of tests and benches are made with, and the binary is not.
const TOOLS: &[&str] = &["reqwest", "proptest", "tempfile"];

#[test]
fn the_binary_has_none_of_the_tools() {
    for (id, path) in reached("godex") {
        assert!(!TOOLS.contains(&name(id)), "the binary reaches {}: {path}", name(id));
    }
}

#[test]
fn the_pure_crates_reach_no_io() {
    for krate in PURE {
        for (id, path) in reached(krate) {
            assert!(!IMPURE.contains(&name(id)), "{krate} reaches {}: {path}", name(id));
        }
    }
}

/// Everything that a crate of ours reaches, and how.
fn reached(krate: &str) -> BTreeMap<&'static PackageId, String> {
    let graph = normal();
    let mut paths = BTreeMap::from([(member(krate), (*krate).to_owned())]);
    let mut queue = vec![member(krate)];
    while let Some(id) = queue.pop() {
        for dep in &graph[id] {
            if !paths.contains_key(dep) {
                paths.insert(dep, format!("{} → {}", paths[id], name(dep)));
                queue.push(dep);
            }
        }
    }
    paths
}

/// A network in which public addresses are elsewhere is brought by tests only: no command and no configuration does.
#[test]
fn only_tests_have_a_network_of_their_own() {
    let own = |path: &str| path == "crates/server/src/lib.rs" || path.starts_with("crates/server/src/outbound");
    let sources = ["crates/cli/src", "crates/server/src"].into_iter().flat_map(source::below);
    for file in sources.filter(|file| !own(&file.path.to_string_lossy())) {
        for (number, code) in file.code() {
            assert!(!code.contains(".among(") && !code.contains("Network"), "{}", file.at(number));
        }
    }
}

/// `arbitrary_precision` breaks floats in tagged and flattened types, and any dependency can switch it on.
#[test]
fn numbers_are_not_of_arbitrary_precision() {
    for node in &metadata().resolve.as_ref().unwrap().nodes {
        let on = node.features.iter().any(|feature| feature.as_str() == "arbitrary_precision");
        assert!(!(on && name(&node.id) == "serde_json"), "a dependency switches serde_json/arbitrary_precision on");
    }
}

#[test]
fn every_crate_forbids_unsafe_code() {
    for id in &metadata().workspace_members {
        // The lint table forbids it too; the attribute holds also for who builds the crate without it.
        for target in metadata()[id].targets.iter().filter(|target| target.is_lib() || target.is_bin()) {
            let text = std::fs::read_to_string(&target.src_path).unwrap();
            assert!(text.contains("#![forbid(unsafe_code)]"), "{} does not forbid unsafe code", target.src_path);
        }
    }
}
