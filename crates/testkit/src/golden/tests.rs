use std::fs;
use std::path::{Path, PathBuf};

use super::{Case, Section, Shows, UpstreamAnswer, pages_in, settle};

const GIVEN: &str = "About.\nsource: hand-made\n=== request\n{}\n=== upstream 429 application/json\nup === down\n";

fn page(root: &Path, text: &str) -> PathBuf {
    let page = root.join("acme/hello.golden");
    fs::create_dir_all(page.parent().unwrap()).unwrap();
    fs::write(&page, text).unwrap();
    page
}

fn only(root: &Path) -> Case {
    let [page] = pages_in(root).unwrap().try_into().unwrap();
    page.read().unwrap()
}

/// In place of the translation: the answer is what came from upstream.
fn echo(case: &Case) -> Vec<Section> {
    let (UpstreamAnswer::Json(bytes) | UpstreamAnswer::Sse(bytes)) = &case.upstream;
    vec![("said".to_owned(), bytes.clone())]
}

#[test]
fn compares_and_blesses() {
    let root = tempfile::tempdir().unwrap();
    let file = page(root.path(), GIVEN);
    let case = only(root.path());
    assert_eq!((case.page.label().as_str(), case.status, case.shows), ("acme/hello", 429, Shows::Gist));
    assert_eq!(case.request, b"{}\n");
    assert!(settle(&case, &echo(&case), false).is_err());
    settle(&case, &echo(&case), true).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{GIVEN}=== said\nup === down\n"));
    settle(&only(root.path()), &echo(&case), false).unwrap();

    fs::write(&file, format!("{GIVEN}=== said\nup\n")).unwrap();
    let problem = settle(&case, &echo(&case), false).unwrap_err().to_string();
    assert!(problem.contains("in line 8\n  expected: up\n  produced: up === down"), "{problem}");
    fs::write(&file, format!("{GIVEN}=== said\nup === down\n=== old\n")).unwrap();
    assert!(settle(&case, &echo(&case), false).is_err(), "a section that nothing produces");
}

#[test]
fn a_head_is_read_and_checked() {
    let root = tempfile::tempdir().unwrap();
    page(root.path(), &GIVEN.replace("hand-made\n", "recorded from acme 1.0\nshows: bytes\n"));
    assert_eq!(only(root.path()).shows, Shows::Bytes);
    for (right, wrong, problem) in [
        ("source", "sauce", "source"),
        ("hand-made", "somewhere", "source"),
        ("\n=== request", "\nshows: everything\n=== request", "shows: everything"),
        ("=== request", "=== requests", "no request"),
        ("=== upstream", "=== downstream", "no upstream"),
        ("429", "many", "no status"),
    ] {
        page(root.path(), &GIVEN.replace(right, wrong));
        let [page] = pages_in(root.path()).unwrap().try_into().unwrap();
        let said = format!("{:#}", page.read().unwrap_err());
        assert!(said.contains(problem) && said.contains("hello.golden"), "{said}");
    }
}

#[test]
fn refuses_what_is_no_page() {
    let root = tempfile::tempdir().unwrap();
    assert!(pages_in(&root.path().join("absent")).is_err());
    page(root.path(), GIVEN);
    fs::write(root.path().join("acme/hello.goldne"), "misspelt").unwrap();
    assert!(pages_in(root.path()).unwrap_err().to_string().contains("hello.goldne"));
    fs::remove_file(root.path().join("acme/hello.goldne")).unwrap();
    fs::create_dir(root.path().join("acme/folder")).unwrap();
    assert!(pages_in(root.path()).is_err());
}
