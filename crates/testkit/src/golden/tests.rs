use std::fs;
use std::path::Path;

use super::{Case, Output, Upstream, cases, run_in};

fn case(root: &Path) -> std::path::PathBuf {
    let folder = root.join("acme/hello");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("request.json"), "{}").unwrap();
    fs::write(folder.join("upstream.json"), "up").unwrap();
    folder
}

/// Stands for the translation: the answer is what came from upstream.
fn echo(case: &Case) -> anyhow::Result<Output> {
    let Upstream::Json(bytes) = &case.upstream else { anyhow::bail!("not JSON") };
    Ok(Output { response_json: Some(bytes.clone()), ..Output::default() })
}

#[test]
fn compares_and_blesses() {
    let root = tempfile::tempdir().unwrap();
    let folder = case(root.path());
    assert!(run_in(root.path(), false, echo).unwrap_err().to_string().contains("acme/hello: no response.json"));
    run_in(root.path(), true, echo).unwrap();
    run_in(root.path(), false, echo).unwrap();
    assert_eq!(fs::read(folder.join("response.json")).unwrap(), b"up");

    fs::write(folder.join("response.json"), "down").unwrap();
    let problem = run_in(root.path(), false, echo).unwrap_err().to_string();
    assert!(problem.contains("response.json differs in line 1\n  expected: down\n  produced: up"), "{problem}");

    fs::write(folder.join("notes.txt"), "old").unwrap();
    run_in(root.path(), true, echo).unwrap();
    assert!(!folder.join("notes.txt").exists(), "a stale file goes");
}

#[test]
fn a_page_is_a_case() {
    let root = tempfile::tempdir().unwrap();
    let page = root.path().join("acme/hello.golden");
    fs::create_dir_all(page.parent().unwrap()).unwrap();
    let given = "About.\nsource: made up\n=== request\n{}\n=== upstream 429 application/json\nup === down\n";
    fs::write(&page, given).unwrap();
    let [case] = cases(root.path()).unwrap().try_into().unwrap();
    assert_eq!((case.name.as_str(), case.status, case.request.as_slice()), ("hello", 429, &b"{}\n"[..]));
    let echo = |case: &Case| {
        let Upstream::Json(bytes) = &case.upstream else { anyhow::bail!("not JSON") };
        Ok(Output { sections: vec![("said".to_owned(), bytes.clone())], ..Output::default() })
    };
    assert!(run_in(root.path(), false, echo).is_err());
    run_in(root.path(), true, echo).unwrap();
    assert_eq!(fs::read_to_string(&page).unwrap(), format!("{given}=== said\nup === down\n"));
    run_in(root.path(), false, echo).unwrap();
    fs::write(&page, given.replace("source", "sauce")).unwrap();
    assert!(cases(root.path()).unwrap_err().to_string().contains("source"));
}

#[test]
fn refuses_what_is_no_case() {
    let root = tempfile::tempdir().unwrap();
    assert!(cases(&root.path().join("absent")).unwrap().is_empty());
    let folder = case(root.path());
    assert_eq!(cases(root.path()).unwrap().len(), 1);
    fs::write(folder.join("upstream.sse"), "both").unwrap();
    assert!(cases(root.path()).is_err());
    fs::remove_file(folder.join("upstream.sse")).unwrap();
    fs::write(folder.join("respnse.json"), "misspelt").unwrap();
    assert!(cases(root.path()).unwrap_err().to_string().contains("respnse.json"));
}
