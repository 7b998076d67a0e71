//! Tokens of an identity provider that is asked over HTTP, as operators have one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use testkit::{Script, Upstream};
use tokio::time::sleep;

use super::{ask, get, with};
use crate::rig::{error, object};
use crate::websocket::client::Client;

/// Clocks may differ by as much.
const LEEWAY: i64 = 60;

struct IdentityProvider {
    http: Upstream,
    pair: Ed25519KeyPair,
    is_up: Arc<AtomicBool>,
}

impl IdentityProvider {
    /// It says where its keys are, and is not up yet.
    async fn start() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "one", "alg": "EdDSA", "x": x}]});
        let is_up = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_up);
        let choose = move |request: &testkit::Received| match request.path.as_str() {
            _ if !seen.load(Ordering::Relaxed) => Script::respond(503),
            "/.well-known/openid-configuration" => {
                let issuer = format!("http://{}", request.header("host").unwrap_or_default());
                Script::json(200, &json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}))
            }
            "/keys" => Script::json(200, &keys),
            _ => Script::respond(404),
        };
        Self { http: Upstream::start_with(choose).await.unwrap(), pair, is_up }
    }

    fn config(&self) -> String {
        format!("oidc: {{issuer: '{}', audience: godex, tenant_claim: team, models_claim: models}}\n", self.http.url())
    }

    /// A good one, but for what is given.
    #[expect(clippy::disallowed_methods, reason = "tokens end by the clock of the wall")]
    fn token(&self, claims: &Value, lives: i64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
        let mut all = json!({"iss": self.http.url(), "aud": "godex", "sub": "u", "exp": now + lives});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", text(&json!({"alg": "EdDSA", "kid": "one"})), text(&all));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()).as_ref()))
    }
}

#[tokio::test]
async fn keys_are_fetched_from_where_the_issuer_says() {
    let provider = IdentityProvider::start().await;
    let rig = with(&provider.config()).await;
    let (a, b) =
        (provider.token(&json!({"team": "a"}), 600), provider.token(&json!({"team": "b", "models": ["m"]}), 600));
    // Nobody knows yet whether it is good: that is no 401.
    let early = error(&ask(&rig, &a, "m").await);
    assert_eq!((early.status, early.code.as_str()), (503, "keys_unavailable"));
    provider.is_up.store(true, Ordering::Relaxed);
    let mut answer = ask(&rig, &a, "m").await;
    for _ in 0..100 {
        if answer.status != 503 {
            break;
        }
        sleep(Duration::from_millis(200)).await;
        answer = ask(&rig, &a, "m").await;
    }
    let path = format!("/v1/responses/{}", object(&answer)["id"].as_str().unwrap());
    object(&get(&rig, &a, &path).await);
    assert_eq!(error(&get(&rig, &b, &path).await).status, 404, "another team's");
    object(&ask(&rig, &b, "m").await);
    assert_eq!(error(&ask(&rig, &b, "fast").await).status, 403, "a model that its claim does not have");
    for (claims, lives, why) in [
        (json!({"team": "a", "aud": "others"}), 600, "for another audience"),
        (json!({"team": "a", "iss": "http://127.0.0.1:9"}), 600, "of another issuer"),
        (json!({"team": "a"}), -LEEWAY - 5, "expired"),
        (json!({}), 600, "of nobody's team"),
    ] {
        assert!(matches!(error(&ask(&rig, &provider.token(&claims, lives), "m").await).status, 401 | 403), "{why}");
    }
    let asked = provider.http.requests().iter().filter(|request| request.path == "/keys").count();
    assert_eq!(asked, 1, "keys are fetched once, not for each token");
}

#[tokio::test]
async fn a_socket_outlives_no_token() {
    let provider = IdentityProvider::start().await;
    provider.is_up.store(true, Ordering::Relaxed);
    let rig = with(&provider.config()).await;
    let bearer = format!("Bearer {}", provider.token(&json!({"team": "a"}), 4 - LEEWAY));
    let (mut socket, _) = Client::connect_as(&rig, &[("authorization", &bearer)]).await;
    let create = json!({"type": "response.create", "model": "m", "store": false, "input": "Hi"});
    assert_eq!(socket.respond(&create).await.response["status"], "completed");
    sleep(Duration::from_secs(5)).await;
    let asked = rig.upstream.requests().len();
    socket.say(&create).await;
    let refused = socket.next().await;
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(401)));
    assert_eq!(rig.upstream.requests().len(), asked);
}
