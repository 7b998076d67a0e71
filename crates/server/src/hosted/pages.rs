//! Pages of the web, fetched for a model: only from public addresses, only so much, only text.
