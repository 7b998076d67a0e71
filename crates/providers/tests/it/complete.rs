//! Which goldens there must be.

/// Text, a stream, a call, reasoning, a schema and an error of every spec.
#[test]
fn every_spec_has_its_goldens() {
    let pages = testkit::golden::pages().unwrap();
    let mut missing = Vec::new();
    for spec in providers::Library::BUILTIN.names() {
        for case in ["text", "stream", "tool-call", "reasoning", "structured", "error"] {
            if !pages.iter().any(|page| page.provider == spec && page.name == case) {
                missing.push(format!("{spec}/{case}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
