use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaEncoding, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://id.example.com";

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Pair {
    fn all() -> [(&'static str, Self); 3] {
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let rsa = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        [("ec", Self::Ec(ec)), ("rsa", Self::Rsa(rsa)), ("ed", Self::Ed(Ed25519KeyPair::generate().unwrap()))]
    }

    fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Self::Rsa(pair) => {
                // A sequence of two numbers: 9 bytes before the first, which has 256, and then 65537.
                let der = pair.public_key().as_ref();
                json!({"kty": "RSA", "kid": kid, "n": text(&der[9..265]), "e": text(&[1, 0, 1])})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "alg": "EdDSA", "x": text(pair.public_key().as_ref())})
            }
        }
    }

    fn sign(&self, message: &[u8], how: &'static dyn RsaEncoding) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(how, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let how: &'static dyn RsaEncoding = if header["alg"] == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", text(header), text(claims));
        let signature = self.sign(signed.as_bytes(), how);
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn oidc(more: impl FnOnce(&mut OidcConfig)) -> Oidc {
    let mut config = OidcConfig {
        issuer: ISSUER.to_owned(),
        audience: "godex".to_owned(),
        jwks_uri: None,
        tenant_claim: "team".to_owned(),
        models_claim: None,
        terms_claim: None,
        terms: Terms::default(),
        jwks_grace: Duration::from_hours(1),
    };
    more(&mut config);
    Oidc::new(config)
}

fn claims() -> Value {
    let now = clock::unix_seconds();
    json!({"iss": ISSUER, "aud": ["other", "godex"], "sub": "user-1", "team": "a", "exp": now + 300, "nbf": now})
}

fn with(more: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        }
    }
    claims
}

fn look(oidc: &Oidc, token: &str) -> Result<Arc<Grant>, Refused> {
    oidc.grant(token.as_bytes(), key::hash(token.as_bytes()), |_| Some(Arc::default()))
}

fn refused(oidc: &Oidc, token: &str) -> (u16, Code, bool) {
    match look(oidc, token) {
        Ok(grant) => panic!("{grant:?}"),
        Err(Refused::Error(error)) => (error.status.as_u16(), error.code, false),
        Err(Refused::UnknownSigner(error) | Refused::UnknownKey(error, _)) => (error.status.as_u16(), error.code, true),
    }
}

fn key_set(keys: &[Value]) -> Vec<u8> {
    json!({"keys": keys}).to_string().into_bytes()
}

#[tokio::test]
async fn tokens_of_each_kind_are_taken_and_say_whose_they_are() {
    for ((name, pair), algs) in Pair::all().into_iter().zip([&["ES256"][..], &["RS256", "PS256"], &["EdDSA"]]) {
        let oidc = oidc(|_| {});
        // Of keys that are not for this, and kinds that are not known, nothing is used.
        // What cannot be read at all keeps nothing from being used.
        let others = [
            json!({"kty": "oct", "k": "c2VjcmV0"}),
            json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}),
            json!({"kty": "RSA", "kid": 5}),
            json!({"kid": "x"}),
            json!("key"),
        ];
        let keys: Vec<Value> = others.into_iter().chain([pair.jwk("k1")]).collect();
        oidc.fetched(Ok(key_set(&keys)));
        for alg in algs {
            for header in [json!({"alg": alg, "kid": "k1", "typ": "JWT"}), json!({"alg": alg})] {
                let token = pair.token(&header, &claims());
                assert!(jwt::looks_like(token.as_bytes()));
                let grant = look(&oidc, &token).unwrap_or_else(|refused| panic!("{name} {alg}: {refused:?}"));
                assert_eq!((grant.id.as_str(), grant.tenant.name()), ("oidc:user-1", "a"));
                assert!(Arc::ptr_eq(&grant, &look(&oidc, &token).unwrap()), "it is remembered");
            }
        }
    }
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let [(_, ec), (_, rsa), (_, ed)] = Pair::all();
    let oidc = oidc(|_| {});
    oidc.fetched(Ok(key_set(&[ec.jwk("ec"), rsa.jwk("rsa"), ed.jwk("ed")])));
    let [(_, other), ..] = Pair::all();
    let good = ec.token(&json!({"alg": "ES256", "kid": "ec"}), &claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let public = URL_SAFE_NO_PAD.decode(rsa.jwk("rsa")["n"].as_str().unwrap()).unwrap();
    let hmac = |message: &str| {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &public);
        URL_SAFE_NO_PAD.encode(aws_lc_rs::hmac::sign(&key, message.as_bytes()))
    };
    let shared = format!("{}.{}", text(&json!({"alg": "HS256", "kid": "rsa"})), text(&claims()));
    for (what, token, unknown) in [
        ("another's signature", other.token(&json!({"alg": "ES256", "kid": "ec"}), &claims()), false),
        ("other claims", format!("{header}.{}.{signature}", text(&with(&json!({"team": "b"})))), false),
        (
            "no algorithm",
            format!("{}.{}.{signature}", text(&json!({"alg": "none", "kid": "ec"})), text(&claims())),
            false,
        ),
        ("the public key as a secret", format!("{shared}.{}", hmac(&shared)), false),
        ("another kind than the key's", ec.token(&json!({"alg": "RS256", "kid": "ec"}), &claims()), true),
        ("what its key is not for", ed.token(&json!({"alg": "ES256", "kid": "ed"}), &claims()), true),
        ("an unknown key", ec.token(&json!({"alg": "ES256", "kid": "new"}), &claims()), true),
        (
            "something that must be understood",
            ec.token(&json!({"alg": "ES256", "kid": "ec", "crit": ["b64"]}), &claims()),
            false,
        ),
        ("a cut signature", good[..good.len() - 8].to_owned(), false),
        ("an empty signature", format!("{signed}.AA"), false),
        ("a header that is no JSON", format!("AAAA.{}.{signature}", text(&claims())), false),
        (
            "an algorithm twice",
            {
                let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"ec","alg":"none"}"#);
                format!("{header}.{}.{signature}", text(&claims()))
            },
            false,
        ),
    ] {
        assert_eq!(refused(&oidc, &token), (401, Code::InvalidApiKey, unknown), "{what}");
    }
    look(&oidc, &good).unwrap();
    for not in ["", "a.b", "a.b.c.d", "a..c", "gdx_abc", "a.b.c d"] {
        assert!(!jwt::looks_like(not.as_bytes()), "{not}");
    }
    assert!(!jwt::looks_like(format!("{}.b.c", "a".repeat(20_000)).as_bytes()));
}

#[tokio::test]
async fn what_a_token_says_is_checked() {
    let [(_, ec), ..] = Pair::all();
    let oidc = oidc(|_| {});
    oidc.fetched(Ok(key_set(&[ec.jwk("k")])));
    let now = clock::unix_seconds();
    let invalid = Some((401, Code::InvalidApiKey, false));
    for (claims, expected) in [
        (json!({}), None),
        (json!({"aud": "godex"}), None),
        (json!({"exp": now - 30, "nbf": now + 30}), None),
        (json!({"exp": 4_102_444_800.5, "nbf": null}), None),
        (json!({"iss": "https://id.example.com/"}), invalid),
        (json!({"iss": null}), invalid),
        (json!({"aud": "other"}), invalid),
        (json!({"aud": ["godex2"]}), invalid),
        (json!({"aud": null}), invalid),
        (json!({"exp": null}), invalid),
        (json!({"exp": "soon"}), invalid),
        (json!({"exp": now - 3600}), Some((401, Code::ExpiredApiKey, false))),
        (json!({"exp": -1}), invalid),
        (json!({"nbf": now + 3600}), invalid),
        (json!({"nbf": "later"}), invalid),
        (json!({"sub": null}), invalid),
        (json!({"team": null}), Some((403, Code::TenantMissing, false))),
        (json!({"team": ["a"]}), Some((403, Code::TenantMissing, false))),
        (json!({"team": "a/b"}), Some((403, Code::TenantMissing, false))),
        (json!({"team": ""}), Some((403, Code::TenantMissing, false))),
    ] {
        let token = ec.token(&json!({"alg": "ES256", "kid": "k"}), &with(&claims));
        match expected {
            None => drop(look(&oidc, &token).unwrap_or_else(|refused| panic!("{claims}: {refused:?}"))),
            Some(expected) => assert_eq!(refused(&oidc, &token), expected, "{claims}"),
        }
    }
    let long = "\u{e9}".repeat(200);
    for sub in [long.as_str(), "a\nb", "ab~7e18f737311b2dc3b2f269dd"] {
        let token = ec.token(&json!({"alg": "ES256", "kid": "k"}), &with(&json!({"sub": sub})));
        let id = look(&oidc, &token).unwrap().id.clone();
        assert!(id.len() <= 5 + LONGEST_SUBJECT && id.contains('~') && !id.contains('\n'), "{id}");
    }
}

#[tokio::test]
async fn claims_become_terms_and_never_widen_what_the_operator_says() {
    let [(_, ec), ..] = Pair::all();
    let oidc = oidc(|config| {
        config.terms = Terms { models: Some(vec!["fast".into(), "x/*".into()]), rpm: Some(60), ..Terms::default() };
        (config.models_claim, config.terms_claim) = (Some("models".into()), Some("godex".into()));
    });
    oidc.fetched(Ok(key_set(&[ec.jwk("k")])));
    for (claims, expected) in [
        (json!({}), r#"{"models":["fast","x/*"],"rpm":60}"#),
        (json!({"models": ["fast", "slow", "x/1", "y/*"]}), r#"{"models":["fast","x/1"],"rpm":60}"#),
        (json!({"models": ["x/1*", "x/", "*"]}), r#"{"models":["x/1*","x/","fast","x/*"],"rpm":60}"#),
        (json!({"models": "f*"}), r#"{"models":["fast"],"rpm":60}"#),
        (json!({"models": "fast slow"}), r#"{"models":["fast"],"rpm":60}"#),
        (json!({"models": 5}), r#"{"models":[],"rpm":60}"#),
        (
            json!({"godex": {"rpm": 5, "budget": "1usd/day"}}),
            r#"{"models":["fast","x/*"],"rpm":5,"budget":"1usd/day"}"#,
        ),
    ] {
        let token = ec.token(&json!({"alg": "ES256", "kid": "k"}), &with(&claims));
        assert_eq!(look(&oidc, &token).unwrap().terms.to_json(), expected, "{claims}");
    }
    // With a limit of 0 nobody is ever served, however long it waits.
    for terms in [json!({"rph": 5}), json!({"rpm": 0}), json!({"concurrency": 0}), json!({"tools": ["shell"]})] {
        let token = ec.token(&json!({"alg": "ES256", "kid": "k"}), &with(&json!({"godex": terms})));
        assert_eq!(refused(&oidc, &token), (401, Code::InvalidApiKey, false), "{terms}");
    }
}

#[tokio::test]
async fn only_keys_that_are_for_signatures_are_used() {
    let [(_, ec), ..] = Pair::all();
    let token = ec.token(&json!({"alg": "ES256", "kid": "k"}), &claims());
    for (purpose, operations, is_used) in [
        (json!("sig"), json!(null), true),
        (json!("enc"), json!(null), false),
        (json!(null), json!(["verify"]), true),
        (json!(null), json!(["sign", "encrypt"]), false),
        (json!("sig"), json!([]), false),
    ] {
        let oidc = oidc(|_| {});
        let mut jwk = ec.jwk("k");
        (jwk["use"], jwk["key_ops"]) = (purpose, operations);
        oidc.fetched(Ok(key_set(std::slice::from_ref(&jwk))));
        assert_eq!(look(&oidc, &token).is_ok(), is_used, "{jwk}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_kept_while_the_issuer_is_away_and_not_for_ever() {
    let [(_, ec), ..] = Pair::all();
    let oidc = oidc(|_| {});
    let token = ec.token(&json!({"alg": "ES256", "kid": "k"}), &claims());
    assert_eq!(refused(&oidc, &token), (503, Code::KeysUnavailable, true));
    oidc.fetched(Err("away".to_owned()));
    assert_eq!(refused(&oidc, &token), (503, Code::KeysUnavailable, true));
    oidc.fetched(Ok(key_set(&[ec.jwk("k")])));
    look(&oidc, &token).unwrap();
    for answer in [Err("away".to_owned()), Ok(b"{}".to_vec()), Ok(key_set(&[])), Ok(b"<html>".to_vec())] {
        oidc.fetched(answer);
        look(&oidc, &token).unwrap();
    }
    tokio::time::advance(Duration::from_mins(61)).await;
    assert_eq!(refused(&oidc, &token), (503, Code::KeysUnavailable, true));
    oidc.fetched(Ok(key_set(&[ec.jwk("k")])));
    look(&oidc, &token).unwrap();
    // With its key a token is gone, though it was remembered.
    let [(_, other), ..] = Pair::all();
    oidc.fetched(Ok(key_set(&[other.jwk("k2")])));
    assert_eq!(refused(&oidc, &token), (401, Code::InvalidApiKey, true));
}

#[tokio::test(start_paused = true)]
async fn whoever_sends_unknown_keys_has_them_asked_for_once_in_a_while() {
    let oidc = Arc::new(oidc(|_| {}));
    let [(_, ec), ..] = Pair::all();
    let asked = async {
        let mut count = 0;
        loop {
            oidc.wanted().await;
            count += 1;
            oidc.fetched(Ok(key_set(&[ec.jwk("k")])));
            if count == 2 {
                break;
            }
        }
    };
    let senders = async {
        for _ in 0..3 {
            // All at once, and one after the other.
            futures_util::future::join_all((0..50).map(|_| oidc.fetch())).await;
        }
        assert_eq!(*oidc.fetches.borrow(), 1);
        tokio::time::advance(ASK_AGAIN).await;
        futures_util::future::join_all((0..50).map(|_| oidc.fetch())).await;
        assert_eq!(*oidc.fetches.borrow(), 2);
    };
    tokio::join!(asked, senders);
}

#[test]
fn a_turn_that_waited_has_the_terms_of_then() {
    let (tenant, terms) = (Tenant::new("a"), r#"{"rpm":5}"#);
    let grant = granted_earlier("oidc:user-1", &tenant, terms, Arc::default()).unwrap();
    assert_eq!((grant.terms.rpm, grant.name.as_str(), grant.expires_at), (Some(5), "user-1", None));
    assert_eq!(granted_earlier("key_1", &tenant, terms, Arc::default()), None);
    assert_eq!(granted_earlier("oidc:user-1", &tenant, r#"{"rph":5}"#, Arc::default()), None);
}
