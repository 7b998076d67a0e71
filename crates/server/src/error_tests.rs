use super::*;

fn store(error: &store::Error) -> ApiError {
    ApiError::store(error)
}

fn upstream(class: FailureClass, code: Option<&str>) -> ApiError {
    ApiError::upstream(&Failure { upstream_code: code.map(str::to_owned), ..Failure::new(class, "words") })
}

fn rule(code: InvalidCode) -> ApiError {
    ApiError::from(Invalid::sentence(code, "words").at("input"))
}

/// What `error.code` is, and the domain code beside it.
#[test]
fn codes_are_openais_or_our_own_and_never_have_dots() {
    let method = http::Method::GET;
    let table = [
        (ApiError::bad_request(Code::InvalidJson, ""), None, "invalid_json"),
        (ApiError::bad_request(Code::InvalidUtf8, ""), None, "invalid_utf8"),
        (ApiError::invalid_body(Invalid::missing()), None, "invalid_body"),
        (ApiError::bad_request(Code::InvalidRequest, ""), None, "invalid_request"),
        (ApiError::bad_request(Code::ResponseNotStreamable, ""), None, "response_not_streamable"),
        (rule(InvalidCode::UnknownCall), None, "bridge.history.unknown_call"),
        (ApiError::response_not_found("x"), None, "response_not_found"),
        (ApiError::conversation_not_found("x"), None, "conversation_not_found"),
        (ApiError::item_not_found("x"), None, "item_not_found"),
        (ApiError::conversation_item_not_found("c", "x"), None, "item_not_found"),
        (ApiError::from(Invalid::missing()), Some("missing_required_parameter"), "missing_required_parameter"),
        (rule(InvalidCode::UnsupportedValue), Some("unsupported_value"), "unsupported_value"),
        (ApiError::not_found(&method, "/"), Some("not_found"), "not_found"),
        (ApiError::method_not_allowed(&method, "POST"), Some("method_not_supported"), "method_not_supported"),
        (ApiError::model_not_found("m", ""), Some("model_not_found"), "model_not_found"),
        (ApiError::too_large(1), Some("request_too_large"), "request_too_large"),
        (ApiError::unsupported_content_type("x"), Some("unsupported_content_type"), "unsupported_content_type"),
        (ApiError::request_timeout(), Some("request_timeout"), "request_timeout"),
        (ApiError::upgrade_required(), Some("websocket_not_supported"), "websocket_not_supported"),
        (ApiError::previous_not_found("x", 400), Some("previous_response_not_found"), "session.chain.not_found"),
        (ApiError::ancestor_deleted("x", 404), Some("previous_response_not_found"), "session.chain.deleted_ancestor"),
        (ApiError::chain_too_deep(1), Some("chain_depth_exceeded"), "session.chain.depth_exceeded"),
        (
            ApiError::chain_unavailable("x", store::Status::Failed),
            Some("previous_response_unavailable"),
            "session.chain.unavailable",
        ),
        (ApiError::forbidden(Code::HostNotAllowed, ""), Some("host_not_allowed"), "host_not_allowed"),
        (ApiError::unavailable(Code::Draining, ""), Some("draining"), "draining"),
        (store(&store::Error::Full), Some("storage_full"), "storage_full"),
        (store(&store::Error::Locked), Some("conversation_locked"), "conversation_locked"),
        (store(&store::Error::NoSuchCursor), Some("invalid_value"), "invalid_value"),
        (store(&store::Error::Corrupt("".into())), Some("storage_damaged"), "storage_damaged"),
        (store(&store::Error::NotFound), Some("deleted_meanwhile"), "session.deleted_meanwhile"),
        (store(&store::Error::DeletedAncestor), Some("deleted_meanwhile"), "session.deleted_meanwhile"),
        (store(&store::Error::TooDeep { limit: 1 }), Some("storage_error"), "storage_error"),
        (store(&store::Error::NoRoom), Some("too_many_bytes_in_flight"), "too_many_bytes_in_flight"),
        (store(&store::Error::Conflict), Some("storage_error"), "storage_error"),
        (upstream(FailureClass::Quota, None), Some("insufficient_quota"), "provider_quota"),
        (upstream(FailureClass::RateLimit, Some("x")), Some("rate_limit_exceeded"), "upstream_rate_limit"),
        (upstream(FailureClass::Timeout, None), Some("upstream_timeout"), "upstream_timeout"),
        (
            upstream(FailureClass::InvalidRequest, Some("unsupported_value")),
            Some("unsupported_value"),
            "upstream_invalid_request",
        ),
        (
            upstream(FailureClass::InvalidRequest, Some("InvalidParameter.Range")),
            Some("upstream_invalid_request"),
            "upstream_invalid_request",
        ),
        (
            upstream(FailureClass::InvalidRequest, Some("1210")),
            Some("upstream_invalid_request"),
            "upstream_invalid_request",
        ),
    ];
    for (error, code, domain) in &table {
        assert_eq!((error.wire.as_deref(), error.code.domain()), (*code, *domain));
        let response = error.response();
        assert_eq!(response.headers()["x-godex-error"], *domain);
        assert!(code.is_none_or(is_code), "{code:?}");
    }
    // Whatever a provider calls it, and inside a response that failed.
    for &class in FailureClass::ALL {
        for code in [None, Some("a.b"), Some(""), Some("A"), Some("é"), Some("a_1")] {
            assert!(upstream(class, code).wire.is_some_and(|code| is_code(&code)), "{class:?} {code:?}");
        }
        let inside = Failure::new(class, "").response_error();
        assert!(is_code(&inside.code) && is_code(class.code()), "{}", inside.code);
    }
}

/// Clients retry 429 and 5xx of themselves, unless they are told that it will not help.
#[test]
fn what_lasts_is_not_retried() {
    let told =
        |error: ApiError| error.response().headers().get("x-should-retry").map(|value| value.as_bytes() == b"false");
    for &class in FailureClass::ALL {
        let lasts = matches!(class, FailureClass::Quota | FailureClass::Auth);
        assert_eq!(told(upstream(class, None)), lasts.then_some(true), "{class:?}");
    }
    assert_eq!(told(store(&store::Error::Corrupt("".into()))), Some(true));
    assert_eq!(told(store(&store::Error::Full)), None);
}

/// A code is one thing: no two lines of the tables share a domain code, but for the model that either side may not
/// have. And each says when it is sent and what to do, in sentences.
#[test]
fn every_code_is_described_once() {
    let mut seen = std::collections::BTreeSet::new();
    for code in Code::all() {
        let twice = code == Code::Upstream(FailureClass::ModelNotFound);
        assert_eq!(seen.insert(code.domain()), !twice, "{}", code.domain());
        assert!(code.wire().is_none_or(is_code), "{}", code.domain());
        for text in [code.when(), code.remedy()] {
            assert!(text.ends_with('.') && text.starts_with(|c: char| c.is_uppercase() || c == '`'), "{text}");
        }
    }
}
