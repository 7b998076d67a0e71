//! Files of the user's: read as they are, and written so that there is always either the old or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// The text of a file; None where there is none.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    // Whoever reads a pipe waits for ever.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!("{} is not a regular file", path.display());
    }
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
                let line = good.split(|byte| *byte == b'\n').count();
                bail!("{}:{line}: not UTF-8; nothing was changed", path.display())
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether a file can be replaced: one that nobody may write is meant to stay, though a new one could take its place.
pub(crate) fn writable(path: &Path) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(found) => {
            ensure!(found.is_file(), "{} is not a file", path.display());
            ensure!(!found.permissions().readonly(), "{} is read-only; nothing was changed", path.display());
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", path.display())),
    }
}

/// Replaces a file as a whole, or makes it. A symbolic link stays one, and the file keeps its mode.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace(path, bytes, true).with_context(|| format!("cannot write {}", path.display()))
}

/// The same for what may hold keys: afterwards it is the owner's alone, whoever could read the old one.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace(path, bytes, false).with_context(|| format!("cannot write {}", path.display()))
}

fn replace(path: &Path, bytes: &[u8], same_mode: bool) -> anyhow::Result<()> {
    let target = target(path)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = target.file_name().context("it has no name")?.to_string_lossy();
    let fresh = folder.join(format!(".{name}.godex-{}", std::process::id()));
    let written = fill(&fresh, bytes, same_mode.then_some(&*target)).and_then(|()| fs::rename(&fresh, &target));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    Ok(written?)
}

fn fill(fresh: &Path, bytes: &[u8], like: Option<&Path>) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // What is beside it holds keys: nobody else gets to read what is new, unless the old one could be read.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(fresh)?;
    if let Some(Ok(old)) = like.map(fs::metadata) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Where a link leads, also one that leads to nothing yet.
fn target(path: &Path) -> anyhow::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..16 {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    bail!("too many links")
}

/// Keeps a copy of a file under a name that is free, and says which.
pub(crate) fn back_up(path: &Path, bytes: &[u8]) -> anyhow::Result<PathBuf> {
    for number in 1..10_000 {
        let copy = backup(path, number);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&copy) {
            Ok(mut file) => {
                let kept = same_mode(&file, path).and_then(|()| file.write_all(bytes)).and_then(|()| file.sync_all());
                kept.with_context(|| format!("cannot write {}", copy.display()))?;
                return Ok(copy);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", copy.display())),
        }
    }
    bail!("{}: too many copies beside it", path.display())
}

fn same_mode(file: &File, like: &Path) -> std::io::Result<()> {
    file.set_permissions(fs::metadata(like)?.permissions())
}

/// The copies beside a file that hold exactly this.
pub(crate) fn backups_of(path: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let copies = (1..10_000).map(|number| backup(path, number)).take_while(|copy| copy.exists());
    copies.filter(|copy| fs::read(copy).is_ok_and(|kept| kept == bytes)).collect()
}

fn backup(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".godex-backup-{number}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_never_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "x").unwrap();
        let first = back_up(&path, b"one").unwrap();
        let second = back_up(&path, b"two").unwrap();
        assert_ne!(first, second);
        assert_eq!(fs::read(&first).unwrap(), b"one");
        assert_eq!(backups_of(&path, b"two"), [second]);
        assert!(backups_of(&path, b"three").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("link.toml"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.toml", &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("real.toml"));
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
        write_private(&link, b"with keys").unwrap();
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
        assert!(writable(&link).unwrap_err().to_string().contains("read-only"));
    }
}
