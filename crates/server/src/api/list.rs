//! List objects: `{"object":"list","data":[…],"first_id","last_id","has_more"}`.

use http::Response;
use store::{Error, Item};
use wire::json::ObjectWriter;

use super::counted;
use crate::body::Body;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::write_listed;

pub(super) fn items(context: &RequestContext, items: &[Item], has_more: bool) -> Result<Response<Body>, ApiError> {
    let bytes = 256 + items.iter().map(|item| item.body.len() + 64).sum::<usize>();
    let absent = || ApiError::item_not_found("");
    counted(context, bytes, |body| context.session().observe(write(items, has_more, body), absent))
}

fn write(items: &[Item], has_more: bool, body: &mut Vec<u8>) -> Result<(), Error> {
    let mut list = ObjectWriter::new(body);
    list.text("object", "list");
    let data = list.key("data");
    data.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            data.push(b',');
        }
        write_listed(item, data)?;
    }
    data.push(b']');
    for (name, item) in [("first_id", items.first()), ("last_id", items.last())] {
        match item {
            Some(item) => list.text(name, &item.id),
            None => list.null(name),
        };
    }
    list.bool("has_more", has_more);
    list.end();
    Ok(())
}
