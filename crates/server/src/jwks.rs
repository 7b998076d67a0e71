//! Fetches the keys of the identity provider: where the configuration says, or where the issuer itself does, by
//! discovery. Again and again, and when a token is signed with a key that is not known; never for each token.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use wire::json::{Raw, Text};

use crate::access::Access;
use crate::config::OidcConfig;
use crate::outbound::{Outbound, Reach};

/// How often, if all is well.
const OFTEN: Duration = Duration::from_mins(5);
/// How soon after it was not.
const SOON: Duration = Duration::from_secs(5);
/// For one question.
const DEADLINE: Duration = Duration::from_secs(10);
/// More of an answer is not read.
const LARGEST: usize = 256 << 10;

/// Runs as long as the server.
pub(crate) async fn maintain(access: Arc<Access>, outbound: Arc<Outbound>) {
    loop {
        let Some(oidc) = access.oidc() else {
            access.oidc_changed().await;
            continue;
        };
        oidc.is_fetching();
        oidc.fetched(Box::pin(fetch(&oidc.config, &outbound)).await);
        let pause = if oidc.has_failed() { SOON } else { OFTEN };
        tokio::select! {
            () = sleep(pause) => {}
            () = oidc.wanted() => {}
            () = access.oidc_changed() => {}
        }
    }
}

async fn fetch(config: &OidcConfig, outbound: &Outbound) -> Result<Vec<u8>, String> {
    let uri = match &config.jwks_uri {
        Some(uri) => uri.clone(),
        None => discovered(config, outbound).await?,
    };
    get(&uri, outbound).await
}

/// Where the issuer says that its keys are.
async fn discovered(config: &OidcConfig, outbound: &Outbound) -> Result<String, String> {
    let about = format!("{}/.well-known/openid-configuration", config.issuer.trim_end_matches('/'));
    let answer = get(&about, outbound).await?;
    let document = str::from_utf8(&answer).ok().and_then(|text| Raw::parse(text).ok());
    let text = |name: &str| document.and_then(|document| document.get(name)?.text()).map(Text::decode);
    if text("issuer").as_deref() != Some(config.issuer.as_str()) {
        return Err("what it says of itself is of another issuer: `oidc.issuer` must be as tokens have it".to_owned());
    }
    let uri = text("jwks_uri").ok_or("it does not say where its keys are")?.into_owned();
    // Whoever could change them on their way could make tokens.
    if config.issuer.starts_with("https:") && !uri.starts_with("https:") {
        return Err("its keys are not at an https address".to_owned());
    }
    Ok(uri)
}

async fn get(uri: &str, outbound: &Outbound) -> Result<Vec<u8>, String> {
    let request = Request::get(uri)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("godex/", env!("CARGO_PKG_VERSION")))
        .body(Bytes::new());
    let request = request.map_err(|_| "its address cannot be asked for".to_owned())?;
    let answered = async {
        // The operator has named it: it may be anywhere.
        let answer = outbound.send_to_any_port(request, Reach::Anywhere).await.map_err(|error| error.to_string())?;
        if answer.status() != StatusCode::OK {
            return Err(format!("it answers with {}", answer.status().as_u16()));
        }
        let (mut incoming, mut body) = (answer.into_body(), Vec::new());
        while let Some(frame) = incoming.frame().await {
            let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
            if body.len() + data.len() > LARGEST {
                return Err("its answer is too long".to_owned());
            }
            body.extend_from_slice(&data);
        }
        Ok(body)
    };
    timeout(DEADLINE, answered).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}
