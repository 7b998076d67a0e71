//! `docs/errors.md`.

use server::{ErrorCode, note_code};

use super::{check, code, table};

const HEAD: [&str; 5] = ["`error.code`", "status", "`x-godex-error`", "when", "what to do"];

fn row(error: ErrorCode) -> [String; 5] {
    let sent = error.wire().map_or_else(|| "null".to_owned(), code);
    let (status, domain) = (error.status().as_u16().to_string(), code(error.domain()));
    [sent, status, domain, error.when().to_owned(), error.remedy().to_owned()]
}

#[test]
fn errors_are_documented() {
    let own = ErrorCode::all().filter(|code| !matches!(code, ErrorCode::Invalid(_) | ErrorCode::Upstream(_)));
    let values = ErrorCode::all().filter(|code| matches!(code, ErrorCode::Invalid(_)));
    let providers = ErrorCode::all().filter_map(|error| {
        let ErrorCode::Upstream(class) = error else { return None };
        let [sent, status, domain, when, remedy] = row(error);
        Some([sent, code(error.kind()), status, domain, code(class.response_code()), when, remedy])
    });
    let head = [HEAD[0], "`error.type`", HEAD[1], HEAD[2], "in a stream", HEAD[3], HEAD[4]];
    let notes = note_code::ALL.iter().map(|note| [code(note.name()), note.when().to_owned(), note.remedy().to_owned()]);
    let tables = [
        ("requests", table(HEAD, own.map(row))),
        ("values", table(HEAD, values.map(row))),
        ("providers", table(head, providers)),
        ("notes", table(["code", "when", "what to do"], notes)),
    ];
    check("docs/errors.md", &tables);
}
