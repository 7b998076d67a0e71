//! Which goldens there must be.

use crate::specs::provider;

/// Text, a stream, a call, reasoning, a schema and an error of every spec that has words of its own. One that only has
/// another address or key than the spec below shows that with a single request.
#[test]
fn every_spec_has_its_goldens() {
    const ALL: [&str; 6] = ["text", "stream", "tool-call", "reasoning", "structured", "error"];
    let pages = testkit::golden::pages().unwrap();
    let (mut missing, mut alike) = (Vec::new(), 0);
    for spec in providers::Library::BUILTIN.names() {
        let own = provider(spec);
        let is_alike = own.extends().is_some_and(|parent| own.speaks_like(&provider(parent)));
        alike += usize::from(is_alike);
        for case in if is_alike { &ALL[..1] } else { &ALL[..] } {
            if !pages.iter().any(|page| page.provider == spec && page.name == *case) {
                missing.push(format!("{spec}/{case}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(alike > 20 && !provider("zhipu").speaks_like(&provider("openai-compatible")), "{alike}");
}
