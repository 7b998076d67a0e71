//! The parts of items: texts, images, files.

use wire::json::{Kind, Raw};

/// The parts of an item: of a message, or of what a tool gave back.
pub(crate) fn parts(item: Raw<'_>) -> impl Iterator<Item = Raw<'_>> {
    let members = ["content", "output"].into_iter().filter_map(move |name| item.get(name));
    members.flat_map(|value| {
        let whole = (value.kind() == Kind::Object).then_some(value);
        whole
            .into_iter()
            .chain(Some(value).filter(|value| value.kind() == Kind::Array).into_iter().flat_map(Raw::elements))
    })
}
