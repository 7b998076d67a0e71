//! The floor: a reverse proxy on godex's own stack that forwards bytes and looks at none of them. What a
//! gateway costs beyond this is the price of translating.

use anyhow::Result;
use http::header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{Request, Response};
use hyper::body::Incoming;

use crate::serve;

pub(crate) async fn run(upstream: &str) -> Result<()> {
    let client = reqwest::Client::builder()
        .http1_only()
        .no_proxy()
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let url = reqwest::Url::parse(&format!("http://{upstream}/v1/chat/completions"))?;
    serve::serve(move |request| forward(client.clone(), url.clone(), request)).await
}

async fn forward(
    client: reqwest::Client,
    url: reqwest::Url,
    request: Request<Incoming>,
) -> Result<Response<reqwest::Body>> {
    let body = reqwest::Body::wrap(request.into_body());
    let answer = client.post(url).header(CONTENT_TYPE, "application/json").body(body).send().await?;
    let mut answer: Response<reqwest::Body> = answer.into();
    answer.headers_mut().remove(CONNECTION);
    answer.headers_mut().remove(TRANSFER_ENCODING);
    Ok(answer)
}
