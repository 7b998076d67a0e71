//! The body of a fuzz target over what is saved for it: here, the requests of all goldens, whole and cut short.

#[path = "../../../../fuzz/bodies/request_to_chat.rs"]
mod request_to_chat;

#[test]
fn requests_of_the_goldens() {
    let pages = testkit::golden::pages().unwrap();
    assert!(pages.len() > 150, "{} pages", pages.len());
    for page in pages {
        let request = page.read().unwrap().request;
        request_to_chat::run(request.trim_ascii());
        request_to_chat::run(&request[..request.len() / 2]);
    }
}
