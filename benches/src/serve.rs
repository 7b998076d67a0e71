//! The accept loop of the upstream and of the floor: hyper-util's automatic server with `TCP_NODELAY`, as in
//! godex itself.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpSocket};

/// Serves on a free loopback port, whose address is printed, until the process ends.
pub(crate) async fn serve<S, F, B>(answer: S) -> Result<()>
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let listener = listen()?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(answer);
            // A connection that fails is the load generator's to report.
            Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

/// A free loopback port, whose address is printed.
pub(crate) fn listen() -> Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    // The default queue overflows when a few hundred connections come at once; each then waits a second.
    let listener = socket.listen(4096)?;
    println!("address: {}", listener.local_addr()?);
    Ok(listener)
}
