//! Pictures and files of the battery: a red square in three formats, a word in two.

use serde_json::{Value, json};

use super::LOOK;

/// What stands in the files, and nowhere else.
pub(crate) const FILE_WORD: &str = "OSPREY-52";
const READ: &str = "Which word does this file give? Answer with it, and nothing else.";

/// A red square of 32 pixels.
pub(crate) const PNG: &str = "data:image/png;base64,\
iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC";
pub(crate) const JPEG: &str = "data:image/jpeg;base64,\
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/\
2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAgACADASIAAhEBAxEB/8QA\
FQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFgEBAQEAAAAAAAAAAAAAAAAAAAUG/8QAFBEBAAAAAAAAAAAAAAAAAAAAAP/a\
AAwDAQACEQMRAD8AigJbeAAAAAAP/9k=";
pub(crate) const WEBP: &str = "data:image/webp;base64,UklGRhYAAABXRUJQVlA4TAoAAAAvH8AHAIj+R/8D";

/// One page with one line of text.
const PDF: &str = "data:application/pdf;base64,\
JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50\
IDE+PmVuZG9iagozIDAgb2JqPDwvVHlwZS9QYWdlL1BhcmVudCAyIDAgUi9NZWRpYUJveFswIDAgMzAwIDEwMF0vUmVzb3VyY2VzPDwvRm9udDw8L0YgNSAw\
IFI+Pj4+L0NvbnRlbnRzIDQgMCBSPj5lbmRvYmoKNCAwIG9iajw8L0xlbmd0aCA0OD4+c3RyZWFtCkJUL0YgMTggVGYgMjAgNTAgVGQoVGhlIHdvcmQgaXMg\
T1NQUkVZLTUyLilUaiBFVAplbmRzdHJlYW1lbmRvYmoKNSAwIG9iajw8L1R5cGUvRm9udC9TdWJ0eXBlL1R5cGUxL0Jhc2VGb250L0hlbHZldGljYT4+ZW5k\
b2JqCnhyZWYKMCA2CjAwMDAwMDAwMDAgNjU1MzUgZiAKMDAwMDAwMDAwOSAwMDAwMCBuIAowMDAwMDAwMDUyIDAwMDAwIG4gCjAwMDAwMDAxMDEgMDAwMDAg\
biAKMDAwMDAwMDIxMCAwMDAwMCBuIAowMDAwMDAwMzAzIDAwMDAwIG4gCnRyYWlsZXI8PC9TaXplIDYvUm9vdCAxIDAgUj4+CnN0YXJ0eHJlZgozNjQKJSVF\
T0YK";
/// The same line.
pub(crate) const LINE: &str = "The word is OSPREY-52.\n";
const TEXT: &str = "data:text/plain;base64,VGhlIHdvcmQgaXMgT1NQUkVZLTUyLgo=";

/// A question about the picture at this address.
pub(crate) fn picture(url: &str) -> Value {
    json!([{"role": "user", "content": [{"type": "text", "text": LOOK}, image(url)]}])
}

pub(crate) fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

pub(crate) fn pdf() -> Value {
    file("probe.pdf", PDF)
}

pub(crate) fn text_file() -> Value {
    file("probe.txt", TEXT)
}

fn file(name: &str, data: &str) -> Value {
    let file = json!({"type": "file", "file": {"filename": name, "file_data": data}});
    json!([{"role": "user", "content": [{"type": "text", "text": READ}, file]}])
}
