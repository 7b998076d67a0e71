//! `godex page`: the page of the godex that runs, in the browser, until Ctrl-C.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;
use server::admin::PageDoor;

use crate::args::{Flags, PageArgs, home, variable};
use crate::{admin, output};

pub(crate) fn run(flags: &Flags, args: &PageArgs) -> anyhow::Result<()> {
    admin::with_running(flags, "show", async |client| {
        let door = PageDoor::open(client, args.port).await.context("cannot open a port for the page")?;
        let link = door.link();
        output::print(&format!("{link}\n"))?;
        let opened = if args.no_open { None } else { open(&link) };
        output::tell(if opened.is_some() {
            "The browser opens it; if it does not, open the link above. It works once. Ctrl-C ends the page.\n"
        } else {
            "Open this link in a browser of this machine. It works once. Ctrl-C ends the page.\n"
        });
        tokio::select! {
            () = door.serve() => {}
            ended = ended() => ended?,
        }
        drop(opened);
        Ok(())
    })
}

/// Ready when the user has seen enough.
async fn ended() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        tokio::select! {
            done = tokio::signal::ctrl_c() => done.context("cannot listen for Ctrl-C"),
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")
}

/// A file that leads to the link. Everybody can read the command lines of a machine's processes, so the link itself is not in
/// one; the file is the user's alone, and gone at the end.
struct Leading(PathBuf);

impl Drop for Leading {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Leading {
    fn write(link: &str) -> Option<Self> {
        let folder = home()?.join(".godex");
        fs::create_dir_all(&folder).ok()?;
        let path = folder.join(format!("page-{}.html", std::process::id()));
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).ok()?;
        let leading = Self(path);
        let html = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>godex</title>\
             <p><a href=\"{link}\">Open the page</a></p>\n"
        );
        file.write_all(html.as_bytes()).ok().map(|()| leading)
    }
}

/// Has the browser of this desktop open it; None where there is none.
fn open(link: &str) -> Option<Leading> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        (set("DISPLAY") || set("WAYLAND_DISPLAY")).then_some("xdg-open")?
    };
    let leading = Leading::write(link)?;
    let mut command = Command::new(program);
    command.arg(&leading.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok().map(|_| leading)
}
