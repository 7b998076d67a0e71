//! What a provider lists of its own models.

/// A provider's list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) models: Vec<ListedModel>,
}

/// What it says of one model; None: nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedModel {
    pub(crate) name: String,
    pub(crate) context_window: Option<u64>,
    pub(crate) images: Option<bool>,
}

impl Listing {
    pub(crate) fn find(&self, name: &str) -> Option<&ListedModel> {
        self.models.iter().find(|model| model.name == name)
    }
}
