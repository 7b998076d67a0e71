//! Where the admin listener is: a socket in the file system, or a port.

use std::io;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::config::AdminListen;
use crate::listen;
use crate::start::StartError;

/// A connection, of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(unix::UnixSocket),
}

impl Listener {
    pub(super) async fn bind(listen: &AdminListen) -> Result<Option<Self>, StartError> {
        match listen {
            AdminListen::Off => Ok(None),
            AdminListen::Tcp(address) => {
                let bound = listen::bind(address).await;
                let failed = |source| StartError::Bind { address: address.clone(), source };
                Ok(Some(Self::Tcp(bound.map_err(failed)?)))
            }
            #[cfg(unix)]
            AdminListen::Unix(path) => match unix::UnixSocket::bind(path) {
                Ok(socket) => Ok(Some(Self::Unix(socket))),
                // Several may run on one machine; that one cannot be managed is no reason not to serve.
                Err(error) => {
                    let message = "there is no admin listener: set `admin.listen` to another path, or to `off`";
                    tracing::warn!(path = %path.display(), %error, "{message}");
                    Ok(None)
                }
            },
            #[cfg(not(unix))]
            AdminListen::Unix(_) => Ok(None),
        }
    }

    pub(super) const fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    pub(super) fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|address| address.to_string()).unwrap_or_default(),
            #[cfg(unix)]
            Self::Unix(socket) => format!("unix:{}", socket.path().display()),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(listener) => Ok(Box::new(listener.accept().await?.0)),
            #[cfg(unix)]
            Self::Unix(socket) => Ok(Box::new(socket.accept().await?)),
        }
    }
}

/// Why nobody could listen on a socket of that name, its folder aside. Nothing is made.
pub fn socket_problem(path: &Path) -> Option<String> {
    #[cfg(unix)]
    return unix::check(path).err().map(|error| error.to_string());
    #[cfg(not(unix))]
    return Some(format!("{}: there are no such sockets on this system", path.display()));
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, DirBuilder, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use tokio::net::{UnixListener, UnixStream};

    use crate::clock;

    /// What every system that has such sockets lets clients open.
    const LONGEST: usize = 103;

    /// A socket that nobody but this user may open. Its file is gone with it.
    #[derive(Debug)]
    pub(in crate::admin) struct UnixSocket {
        listener: UnixListener,
        path: PathBuf,
        /// By which the file is known to be this one.
        inode: u64,
    }

    impl UnixSocket {
        /// The file of a process that is gone is replaced, that of one that lives is not.
        pub(super) fn bind(path: &Path) -> io::Result<Self> {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            check(path)?;
            // Made where nobody else can look, and shown when nobody else may open it.
            let hidden = folder.join(format!(".a{:08x}", clock::random() & 0xffff_ffff));
            DirBuilder::new().mode(0o700).create(&hidden)?;
            let bound = Self::bind_in(&hidden, path);
            let _ = fs::remove_file(hidden.join("s"));
            let _ = fs::remove_dir(&hidden);
            bound
        }

        fn bind_in(hidden: &Path, path: &Path) -> io::Result<Self> {
            let made = hidden.join("s");
            let listener = UnixListener::bind(&made)?;
            fs::set_permissions(&made, Permissions::from_mode(0o600))?;
            let inode = fs::symlink_metadata(&made)?.ino();
            fs::rename(&made, path)?;
            Ok(Self { listener, path: path.to_owned(), inode })
        }

        pub(super) fn path(&self) -> &Path {
            &self.path
        }

        pub(super) async fn accept(&self) -> io::Result<UnixStream> {
            Ok(self.listener.accept().await?.0)
        }
    }

    pub(super) fn check(path: &Path) -> io::Result<()> {
        if path.as_os_str().len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is longer than a socket's may be"));
        }
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
        }
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
            Err(error) => Err(error),
        }
    }

    impl Drop for UnixSocket {
        fn drop(&mut self) {
            if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
                let _ = fs::remove_file(&self.path);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn the_socket_is_its_users_and_replaces_only_a_dead_one() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("new/admin.sock");
            let first = UnixSocket::bind(&path).unwrap();
            let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else stays");
            assert_eq!(UnixSocket::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            assert!(UnixStream::connect(&path).await.is_ok());
            drop(first);
            assert!(!path.exists());

            // A process that was killed leaves its file behind.
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            assert!(path.exists());
            let second = UnixSocket::bind(&path).unwrap();
            assert!(UnixStream::connect(&path).await.is_ok());
            fs::remove_file(&path).unwrap();
            fs::write(&path, "somebody's").unwrap();
            drop(second);
            assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's");
            assert_eq!(UnixSocket::bind(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
    }
}
