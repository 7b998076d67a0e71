//! Files for models that take none: what each becomes, and what is said of it.

use std::sync::Arc;

use bridge::{Dialect, FileTexts, Hosting, ImageInput, ImageTexts, Lacking, PdfText, PdfUnread, Plan, PlanTarget};
use serde_json::{Value, json};
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

use crate::run::{MEND, TransparentSeal};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

/// Knows PDFs by what stands in for their data.
#[derive(Debug)]
struct Known {
    room: usize,
    most: usize,
}

impl FileTexts for Known {
    fn pdf(&self, data: &str) -> Result<PdfText, PdfUnread> {
        let text = |text: &str, pages, of, cut| Ok(PdfText { text: text.into(), pages, of, cut });
        match data {
            "JVBERi1vbmUlJUVPRg==" => text("[page 1]\none", 1, 1, false),
            "JVBERi1tYW55" => text("[page 1]\na\n[page 2]\nb", 2, 30, true),
            "JVBERi1sb25n" => text(&"é".repeat(3000), 1, 1, false),
            "JVBERi1zZWNyZXQ=" => Err(PdfUnread::Encrypted),
            "JVBERi1zY2Fu" => Err(PdfUnread::NoText),
            "JVBERi1ib21i" => Err(PdfUnread::Limits),
            "JVBERi1ub25l" => Err(PdfUnread::NotBuilt),
            _ => Err(PdfUnread::Unavailable),
        }
    }

    fn room(&self) -> usize {
        self.room
    }

    fn most(&self) -> usize {
        self.most
    }
}

#[derive(Debug)]
struct Seer;

impl ImageTexts for Seer {
    fn of(&self, url: &str) -> Option<Arc<str>> {
        (url == format!("data:image/png;base64,{PNG}")).then(|| "a dot".into())
    }
}

fn blind() -> Dialect {
    let mut dialect = Dialect::default();
    dialect.request.content.files = false;
    dialect.request.content.images = ImageInput::None;
    dialect
}

fn planned(
    input: &Value,
    dialect: &Dialect,
    files: Option<&dyn FileTexts>,
    images: Option<&dyn ImageTexts>,
) -> Result<(Value, Vec<String>), String> {
    let request = json!({"model": "m", "input": input}).to_string();
    let request = CreateResponse::from_raw(Raw::parse(&request).unwrap()).unwrap();
    let hosting = Hosting::default();
    let seal = &TransparentSeal;
    let target = PlanTarget { model: "up", dialect, policy: MEND, seal, images, files, cache_key: None, hosting };
    let Plan { body, notes, .. } = bridge::plan(&request, &[], target).map_err(|invalid| format!("{invalid:?}"))?;
    let body: Value = serde_json::from_slice(&body).unwrap();
    Ok((body["messages"].clone(), notes.iter().map(|note| note.message.to_string()).collect()))
}

fn file(name: &str, data: &str) -> Value {
    json!({"type": "input_file", "filename": name, "file_data": data})
}

fn user(parts: &[Value]) -> Value {
    json!({"role": "user", "content": parts})
}

#[test]
fn files_become_what_a_model_can_take() {
    let read = "read as text: this model takes no files";
    for (part, text, note) in [
        (
            file("a.pdf", "data:application/pdf;base64,JVBERi1vbmUlJUVPRg=="),
            "[a.pdf: PDF of 1 page, as text]\n[page 1]\none",
            format!("PDF of 1 page {read}"),
        ),
        (
            file("", "data:application/pdf;base64,JVBERi1vbmUlJUVPRg=="),
            "[file.pdf: PDF of 1 page, as text]\n[page 1]\none",
            format!("PDF of 1 page {read}"),
        ),
        (
            file("a.PDF", "JVBERi1vbmUlJUVPRg=="),
            "[a.PDF: PDF of 1 page, as text]\n[page 1]\none",
            format!("PDF of 1 page {read}"),
        ),
        (
            file("a.pdf", "JVBERi1tYW55"),
            "[a.pdf: PDF of 30 pages, as text]\n[page 1]\na\n[page 2]\nb\n[cut here: the rest of page 2 and pages 3 to 30 are left out]",
            format!("PDF of 30 pages {read}; the rest of page 2 and pages 3 to 30 are left out"),
        ),
        (
            file("a.pdf", "JVBERi1zZWNyZXQ="),
            "[a.pdf: PDF omitted: it needs a password]",
            "PDF left out: it needs a password".into(),
        ),
        (
            file("a.pdf", "JVBERi1zY2Fu"),
            "[a.pdf: PDF omitted: its pages have no text, only images]",
            "PDF left out: its pages have no text, only images".into(),
        ),
        (
            file("a.pdf", "JVBERi1ib21i"),
            "[a.pdf: PDF omitted: reading it took more time or memory than it may]",
            "PDF left out: reading it took more time or memory than it may".into(),
        ),
        (
            file("a.pdf", "JVBERi1ub25l"),
            "[a.pdf: PDF omitted: this server was built without the reading of PDFs]",
            "PDF left out: this server was built without the reading of PDFs".into(),
        ),
        (
            file("a.pdf", "AAAA"),
            "[a.pdf: PDF omitted: nobody could read it now]",
            "PDF left out: nobody could read it now".into(),
        ),
        (file("Makefile", "YWxsOgo="), "[Makefile]\nall:\n", String::new()),
        (file("a.txt", "data:text/plain,a%20b"), "[a.txt]\na b", String::new()),
        // What it is called is not what it is.
        (
            file("a.txt", "data:text/plain;base64,JVBERi1vbmUlJUVPRg=="),
            "[a.txt: PDF of 1 page, as text]\n[page 1]\none",
            format!("PDF of 1 page {read}"),
        ),
        (file("a.pdf", "data:application/pdf;base64,PGh0bWw+"), "[a.pdf]\n<html>", String::new()),
        (file("a.txt", "data:text/plain;base64,77u/YQ=="), "[a.txt]\na", String::new()),
        (file("a.csv", "6Q=="), "[a.csv]\né", "file read as Latin-1: it is not UTF-8".into()),
        (
            file("a.zip", "UEsDBAAAAAAA/w=="),
            "[file omitted: this model cannot read it]",
            "file left out: this model cannot read it".into(),
        ),
        (
            file("a.png", PNG),
            "[image omitted: this model cannot see it]",
            "image left out: this model cannot see it".into(),
        ),
        (
            json!({"type": "input_file", "file_url": "https://x/y.pdf"}),
            "[file omitted: this model has no access to it]",
            "file left out: this model has no access to it".into(),
        ),
        (
            json!({"type": "input_file", "file_id": "file-1"}),
            "[file omitted: this model has no access to it]",
            "file left out: this model has no access to it".into(),
        ),
    ] {
        let (messages, notes) = planned(
            &json!([user(std::slice::from_ref(&part))]),
            &blind(),
            Some(&Known { room: 10_000, most: 9 }),
            None,
        )
        .unwrap();
        assert_eq!(messages[0]["content"], text, "{part}");
        assert_eq!(notes.join("|"), note, "{part}");
    }
}

#[test]
fn a_tool_may_give_back_a_file() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let output =
        json!({"type": "function_call_output", "call_id": "c", "output": [file("a.pdf", "JVBERi1vbmUlJUVPRg==")]});
    let (messages, notes) =
        planned(&json!([call, output]), &blind(), Some(&Known { room: 10_000, most: 9 }), None).unwrap();
    assert_eq!(messages[1]["content"], "[a.pdf: PDF of 1 page, as text]\n[page 1]\none");
    assert_eq!(notes.len(), 1);
}

#[test]
fn what_a_provider_takes_goes_as_it_is() {
    let known = Known { room: 10_000, most: 9 };
    let mut native = blind();
    native.request.content.files = true;
    let parts =
        [file("a.pdf", "data:application/pdf;base64,JVBERi1vbmUlJUVPRg=="), file("b", PNG), file("c.txt", "YQ==")];
    let (messages, notes) = planned(&json!([user(&parts)]), &native, Some(&known), None).unwrap();
    assert_eq!(messages[0]["content"][0]["file"]["file_data"], "data:application/pdf;base64,JVBERi1vbmUlJUVPRg==");
    assert_eq!(messages[0]["content"][1]["file"]["file_data"], PNG);
    assert_eq!(messages[0]["content"][2]["text"], "[c.txt]\na");
    assert_eq!(notes, Vec::<String>::new());
    // What its reader would refuse, in this turn and in all later ones.
    for (data, why) in [
        ("JVBERi0xLjcgYW5kIHNvIG9u", "it is damaged"),
        ("JVBERi0xLjcgdHJhaWxlcjw8L0VuY3J5cHQgNSAwIFI+PnN0YXJ0eHJlZiA5ICUlRU9G", "it needs a password"),
    ] {
        let (messages, notes) = planned(&json!([user(&[file("a.pdf", data)])]), &native, Some(&known), None).unwrap();
        assert_eq!(messages[0]["content"], format!("[a.pdf: PDF omitted: {why}]"));
        assert_eq!(notes, [format!("PDF left out: {why}")]);
    }
    // But under its own name.
    let misnamed = [file("a.txt", "data:text/plain;base64,JVBERi1vbmUlJUVPRg=="), file("b.pdf", "aGk=")];
    let (messages, _) = planned(&json!([user(&misnamed)]), &native, Some(&known), None).unwrap();
    assert_eq!(messages[0]["content"][0]["file"]["file_data"], "data:application/pdf;base64,JVBERi1vbmUlJUVPRg==");
    assert_eq!(messages[0]["content"][1]["text"], "[b.pdf]\nhi");

    let mut sees = blind();
    sees.request.content.images = ImageInput::Data;
    let (messages, notes) = planned(&json!([user(&parts)]), &sees, Some(&known), None).unwrap();
    assert_eq!(messages[0]["content"][1]["image_url"]["url"], format!("data:image/png;base64,{PNG}"));
    assert_eq!(notes[1], "file sent as the image that it is");

    let (messages, _) = planned(&json!([user(&parts[1..2])]), &blind(), Some(&known), Some(&Seer)).unwrap();
    assert_eq!(messages[0]["content"], "[image: a dot]");
}

/// Where nobody reads, and where what cannot be taken is refused.
#[test]
fn nobody_reads_and_some_refuse() {
    let input = |data: &str| json!([user(&[file("a.pdf", data)])]);
    let (messages, _) = planned(&input("JVBERi1vbmUlJUVPRg=="), &blind(), None, None).unwrap();
    assert_eq!(messages[0]["content"], "[file omitted: this model cannot read it]");
    let mut strict = blind();
    strict.request.content.lacking = Lacking::Reject;
    let known = Known { room: 10_000, most: 9 };
    assert!(planned(&input("JVBERi1vbmUlJUVPRg=="), &strict, Some(&known), None).is_ok());
    assert!(planned(&input("AAAA"), &strict, Some(&known), None).is_ok(), "it may be read another time");
    assert!(planned(&input("JVBERi1zZWNyZXQ="), &strict, Some(&known), None).is_err());
    assert!(planned(&input("JVBERi1vbmUlJUVPRg=="), &strict, None, None).is_err());
}

/// The first files of a conversation get the room: what was sent once is sent again as it was.
#[test]
fn a_longer_conversation_begins_as_the_shorter_one() {
    let known = Known { room: 7101, most: 9 };
    let items = [
        user(&[file("a.pdf", "JVBERi1sb25n")]),
        user(&[file("b.pdf", "JVBERi1sb25n"), file("c.pdf", "JVBERi1vbmUlJUVPRg==")]),
    ];
    let (short, notes) = planned(&json!(items[..1]), &blind(), Some(&known), None).unwrap();
    assert_eq!(notes.len(), 1);
    let (long, notes) = planned(&json!(items), &blind(), Some(&known), None).unwrap();
    assert_eq!(short[0], long[0]);
    let second = long[1]["content"].as_str().unwrap();
    assert!(second.starts_with("[b.pdf: PDF of 1 page, as text]\né"), "{second}");
    assert!(
        second.contains("é\n[cut here: the rest is left out: the files of this request have too much text]"),
        "{second}"
    );
    assert!(second.ends_with("[c.pdf: PDF omitted: the files of this request have too much text]"), "{second}");
    assert_eq!(second.matches('é').count(), 550);
    assert_eq!(notes.len(), 3);
}

/// What comes after the last that is read is never read, also where it is known by now.
#[test]
fn only_so_many_are_read_by_their_place() {
    let known = Known { room: 10_000, most: 2 };
    let items = [
        user(&[file("a.pdf", "JVBERi1zZWNyZXQ="), file("b.txt", "Yg=="), file("c.pdf", "JVBERi1vbmUlJUVPRg==")]),
        user(&[file("d.pdf", "JVBERi1vbmUlJUVPRg=="), file("e.txt", "ZQ==")]),
    ];
    let (long, notes) = planned(&json!(items), &blind(), Some(&known), None).unwrap();
    let expected =
        "[a.pdf: PDF omitted: it needs a password]\n[b.txt]\nb\n[c.pdf: PDF of 1 page, as text]\n[page 1]\none";
    assert_eq!(long[0]["content"], expected);
    assert_eq!(long[1]["content"], "[d.pdf: PDF omitted: this request has too many PDFs]\n[e.txt]\ne");
    assert_eq!(notes[2], "PDF left out: this request has too many PDFs");
    let (short, _) = planned(&json!(items[..1]), &blind(), Some(&known), None).unwrap();
    assert_eq!(short[0], long[0]);
}
