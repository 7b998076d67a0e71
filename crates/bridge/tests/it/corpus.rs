//! The saved corpus of the fuzz targets, on every run of the tests.

#[path = "../../../../fuzz/bodies/chunk_to_events.rs"]
mod chunk_to_events;
#[path = "../../../../fuzz/bodies/sse_decode.rs"]
mod sse_decode;

fn over(target: &str, run: impl Fn(&[u8])) {
    let folder = testkit::root().join("fuzz/seeds").join(target);
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 8, "{target}: {} files", files.len());
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read(file).unwrap());
    }
}

#[test]
fn chunks_to_events() {
    over("chunk_to_events", chunk_to_events::run);
}

#[test]
fn sse_decodes() {
    over("sse_decode", sse_decode::run);
}
