//! `godex page` as a user runs it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use testkit::Client;

use crate::cli::{command, godex, home};
use crate::sessions::Godex;

#[tokio::test]
async fn the_page_is_there_until_it_is_ended() {
    let home = home("session: {backend: memory}\n");
    let (code, out, err) = godex(home.path(), &["page", "--no-open"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("there is nothing to show: no godex listens on unix:"), "{err}");

    let running = Godex::logging_to(home.path(), Stdio::null());
    let mut page =
        command(home.path(), &["page", "--no-open"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(page.stdout.take().unwrap()).lines();
    let link = lines.next().unwrap().unwrap();
    assert!(link.starts_with("http://127.0.0.1:"), "{link}");
    let client = Client::new().unwrap();
    let opened = client.request(Method::GET, &link, &[], String::new()).await.unwrap();
    assert_eq!(opened.status, 200);
    let cookie = opened.header("set-cookie").unwrap();
    let (pair, rest) = cookie.split_once("; Path=").unwrap();
    let base = link.rsplit_once('/').unwrap().0;
    let url = format!("{base}{}", rest.split(';').next().unwrap());
    let shown = client.request(Method::GET, &url, &[("cookie", pair)], String::new()).await.unwrap();
    assert!(shown.status == 200 && String::from_utf8_lossy(&shown.body).contains("<title>godex</title>"));

    // The server goes: the page says so, and stays.
    assert!(running.end(Signal::TERM).success());
    let gone =
        client.request(Method::GET, &format!("{url}admin/status"), &[("cookie", pair)], String::new()).await.unwrap();
    assert_eq!((gone.status, gone.json()["error"]["code"].as_str()), (502, Some("unreachable")));
    kill_process(Pid::from_raw(i32::try_from(page.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    assert!(page.wait().unwrap().success());
    assert!(
        !std::fs::read_dir(home.path().join(".godex")).is_ok_and(|mut files| {
            files.any(|file| file.unwrap().file_name().to_string_lossy().starts_with("page-"))
        })
    );
}
