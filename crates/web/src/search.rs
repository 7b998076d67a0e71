//! Search services as data: `specs/search/*.yaml` say how one is asked and how its answer reads. Requests are built and
//! answers are read here; whoever sends them is elsewhere. An answer is somebody else's text: nothing in it that acts
//! instead of being read is let through.

mod answer;
mod builtin;
mod clean;
mod mock;
mod request;
mod spec;
mod template;

pub use answer::{Found, LARGEST_ANSWER, Unreadable};
pub use clean::clean;
pub use mock::mocked;
pub use request::{Ask, ContextSize, SearchRequest};
pub use spec::{Auth, Counts, Domains, Engine, SearchSpec};
