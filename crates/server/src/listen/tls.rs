//! TLS on the listener: the handshake, and the certificate, which is read again when its files change. A new pair that is
//! no good changes nothing, and the log says why.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::socket::Socket;
use crate::config::{TlsConfig, TlsProblem};

/// How often the files are looked at. What has changed is read when it has stayed as it is from one look to the next:
/// two files are not replaced at once.
const LOOK: Duration = Duration::from_secs(1);

/// What every TLS connection begins with.
const HANDSHAKE: u8 = 0x16;

/// For who speaks HTTP where HTTPS is spoken.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 45\r\n\
    connection: close\r\n\r\nThis port speaks https, and http was spoken.\n";

/// The server's side of TLS.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    /// Gone with the server: that ends the thread which looks at the files.
    _looking: mpsc::Sender<()>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// The certificate that is shown now.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Tls {
    pub(crate) fn new(config: TlsConfig) -> Result<Self, TlsProblem> {
        let stamp = Stamp::of(&config);
        let shown = Arc::new(Shown(RwLock::new(Arc::new(config.load()?))));
        warn_of_readers(&config.key);
        let unusable = |error: rustls::Error| TlsProblem::of_cert(&config, error.to_string());
        let versions = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let versions = versions.with_safe_default_protocol_versions().map_err(unusable)?;
        let resolver = Arc::<Shown>::clone(&shown);
        let mut server = versions.with_no_client_auth().with_cert_resolver(resolver);
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (looking, over) = mpsc::channel();
        // Files are read on a thread of its own: no request waits for a file system.
        std::thread::spawn(move || watch(&config, stamp, &shown, &over));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(server)), _looking: looking })
    }

    /// The handshake. None: there is nothing to be answered over this connection.
    pub(super) async fn accept(&self, mut socket: Socket) -> Option<Stream> {
        match socket.first_byte().await {
            Ok(Some(HANDSHAKE)) => {}
            Ok(Some(byte)) if byte.is_ascii_uppercase() => {
                let _ = socket.write_all(PLAIN).await;
                let _ = socket.shutdown().await;
                return None;
            }
            Ok(_) | Err(_) => return None,
        }
        match self.acceptor.accept(socket).await {
            Ok(stream) => Some(Stream::Secure(Box::new(stream))),
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
        }
    }
}

/// When both files were written, and how long they are.
#[derive(Debug, PartialEq, Eq)]
struct Stamp([Option<(SystemTime, u64)>; 2]);

impl Stamp {
    fn of(config: &TlsConfig) -> Self {
        let stamp = |path: &Path| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        Self([stamp(&config.cert), stamp(&config.key)])
    }
}

/// Until the server is gone.
fn watch(config: &TlsConfig, mut seen: Stamp, shown: &Shown, over: &mpsc::Receiver<()>) {
    let mut is_new = false;
    while over.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
        let now = Stamp::of(config);
        if now != seen {
            (seen, is_new) = (now, true);
            continue;
        }
        if !std::mem::take(&mut is_new) {
            continue;
        }
        match config.load() {
            Ok(pair) => {
                *shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                tracing::info!(cert = %config.cert.display(), "the TLS certificate was read again");
                warn_of_readers(&config.key);
            }
            Err(problem) => tracing::error!("the TLS certificate stays as it was: {problem}"),
        }
    }
}

#[cfg(unix)]
fn warn_of_readers(key: &Path) {
    use std::os::unix::fs::PermissionsExt;

    const OTHERS: u32 = 0o077;
    if std::fs::metadata(key).is_ok_and(|file| file.permissions().mode() & OTHERS != 0) {
        tracing::warn!(key = %key.display(), "the TLS key can be read by others than its owner: chmod 600");
    }
}

#[cfg(not(unix))]
fn warn_of_readers(_key: &Path) {}

/// A client's connection, plain or over TLS.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(Socket),
    /// Boxed: plain connections are not to pay for it.
    Secure(Box<TlsStream<Socket>>),
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Secure(stream) => match Pin::new(stream).poll_read(cx, buf) {
                // Requests say themselves how long they are. An end of ours, see `pause`, is to be one for hyper, too: then it
                // says goodbye as TLS wants it.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                read => read,
            },
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Secure(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
