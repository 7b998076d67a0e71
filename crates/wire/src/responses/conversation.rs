//! The requests of the Conversations API.

use super::item::InputItem;
use crate::json::Object;
use crate::open::open_struct;

open_struct! {
    pub struct CreateConversation { items: Vec<InputItem<'a>>, metadata: Object<'a> }
}

open_struct! {
    pub struct UpdateConversation { metadata: Object<'a> }
}

open_struct! {
    pub struct CreateConversationItems { items: Vec<InputItem<'a>> }
}
