//! Any bytes as a create request, on every dialect of the library: refused, or a chat request that is JSON. Nothing
//! panics, and nothing grows out of proportion.

use std::sync::LazyLock;

use bridge::{Dialect, PlanTarget, Policy, Unsealed};
use providers::{Library, resolve_named};
use serde_json::value::RawValue;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let spec = |name| resolve_named(Library::BUILTIN, name, &|_| None).ok().map(|provider| provider.dialect);
    Library::BUILTIN.names().filter_map(spec).collect()
});

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(raw) = Raw::parse(text) else { return };
    let Ok(request) = CreateResponse::from_raw(raw) else { return };
    for (number, dialect) in DIALECTS.iter().enumerate() {
        let policy = Policy { strict: number % 5 == 4, repair_history: number % 2 == 0 };
        let target = PlanTarget {
            model: "m",
            dialect,
            policy,
            seal: &Unsealed,
            images: None,
            files: None,
            cache_key: None,
            hosting: bridge::Hosting::default(),
        };
        if let Ok(plan) = bridge::plan(&request, &[], target) {
            assert!(serde_json::from_slice::<&RawValue>(&plan.body).is_ok(), "not JSON");
            // Escaping and lowered schemas multiply by small constants; histories must not.
            assert!(plan.body.len() <= 16 * bytes.len() + 65_536, "{} from {}", plan.body.len(), bytes.len());
        }
    }
}
