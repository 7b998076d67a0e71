//! Tokens that a command prints: one run at a time, ahead of the end of the last token, and once more when a token is
//! refused. A token is a secret from the moment that it is read: it leaves in a header and is taken out of everything
//! that is shown. Nobody waits for a run while the last token is still good.

use std::pin::pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridge::{Failure, FailureClass};
use http::HeaderValue;
use providers::TokenCommand;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wire::visible::visible;

use super::Redactor;
use super::client::sensitive;
use crate::config::Secret;
use crate::process_group::Group;
use crate::tasks;

/// How long a run may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// After a run that failed, everybody is told the same for so long.
const REST: Duration = Duration::from_secs(5);
/// Refused tokens lead to a run no more often than this: a token that is new is refused for another reason.
const RENEWALS: Duration = Duration::from_secs(10);
/// More than this is no token: servers refuse such headers.
const OUTPUT: usize = 16 * 1024;
const TOO_MUCH: &str = "it printed more than any token has";
/// So much of what the command complains about is told.
const COMPLAINT: usize = 200;
/// How long its outputs are read when it has ended.
const LINGER: Duration = Duration::from_millis(50);

/// Where a provider's tokens come from.
#[derive(Debug, Clone)]
pub(super) struct Tokens(Arc<Source>);

#[derive(Debug)]
struct Source {
    command: TokenCommand,
    /// What else the provider is sent in confidence.
    secrets: Vec<Secret>,
    state: Mutex<State>,
    /// Whoever has it runs the command.
    turn: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    token: Option<Arc<Token>>,
    failed: Option<(Instant, Failure)>,
    renewed: Option<Instant>,
}

/// A token, and what takes it out of texts.
#[derive(Debug)]
pub(super) struct Token {
    value: Secret,
    pub(super) header: HeaderValue,
    redactor: Redactor,
    /// From when on the next one is wanted.
    stale: Instant,
    /// From when on it is not sent any more.
    over: Instant,
}

impl Tokens {
    pub(super) fn new(command: TokenCommand, secrets: Vec<Secret>) -> Self {
        Self(Arc::new(Source { command, secrets, state: Mutex::default(), turn: Semaphore::new(1) }))
    }

    /// A token that is good; the next one is fetched meanwhile when its end is near.
    pub(super) async fn current(&self) -> Result<Arc<Token>, Failure> {
        match self.0.token() {
            Some(token) if Instant::now() < token.stale => Ok(token),
            Some(token) => {
                let source = Arc::clone(&self.0);
                tasks::spawn_service(async move { source.refresh().await });
                Ok(token)
            }
            None => self.0.fetch().await,
        }
    }

    /// Another token than this one, which was refused; None: there is none to be had, or not so soon.
    pub(super) async fn instead_of(&self, refused: &Token) -> Option<Arc<Token>> {
        let other = || self.0.token().filter(|token| token.value != refused.value);
        if let Some(token) = other() {
            return Some(token);
        }
        // Whoever renews it does so for all to whom it was refused meanwhile.
        let _turn = self.0.turn.acquire().await.ok()?;
        if let Some(token) = other() {
            return Some(token);
        }
        if self.0.resting().is_some() || !self.0.may_renew() {
            return None;
        }
        self.0.run().await.ok()?;
        other()
    }

    /// What takes the tokens out of what is shown; None: there was none yet.
    pub(super) fn redactor(&self) -> Option<Redactor> {
        self.0.lock().token.as_ref().map(|token| token.redactor.clone())
    }
}

impl Source {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self) -> Option<Arc<Token>> {
        self.lock().token.clone().filter(|token| Instant::now() < token.over)
    }

    fn may_renew(&self) -> bool {
        let mut state = self.lock();
        let may = state.renewed.is_none_or(|at| at.elapsed() >= RENEWALS);
        if may {
            state.renewed = Some(Instant::now());
        }
        may
    }

    /// Runs the command ahead of time, unless somebody does.
    async fn refresh(&self) {
        let Ok(_turn) = self.turn.try_acquire() else { return };
        let is_due = self.token().is_none_or(|token| Instant::now() >= token.stale);
        if is_due
            && self.resting().is_none()
            && let Err(failure) = self.run().await
        {
            tracing::warn!(command = self.command.program(), error = failure.message, "a token could not be renewed");
        }
    }

    /// Waits for a run: its own, or that of who is before it. Where that fails, the last token is tried: it may last longer
    /// than was said, and whether it does, the provider knows.
    async fn fetch(&self) -> Result<Arc<Token>, Failure> {
        let turn = self.turn.acquire().await;
        let _turn = turn.map_err(|_| Failure::new(FailureClass::Auth, "No token can be had any more."))?;
        if let Some(token) = self.token() {
            return Ok(token);
        }
        let fetched = match self.resting() {
            Some(failure) => Err(failure),
            None => self.run().await,
        };
        fetched.or_else(|failure| self.lock().token.clone().ok_or(failure))
    }

    /// What the last run failed with, if that was just now.
    fn resting(&self) -> Option<Failure> {
        let state = self.lock();
        let (at, failure) = state.failed.as_ref()?;
        (at.elapsed() < REST).then(|| failure.clone())
    }

    async fn run(&self) -> Result<Arc<Token>, Failure> {
        let began = Instant::now();
        let printed = tokio::time::timeout(PATIENCE, self.print()).await;
        let printed = printed.unwrap_or_else(|_| Err(format!("it took longer than {} seconds", PATIENCE.as_secs())));
        let token = printed.and_then(|value| self.token_of(value, began));
        let mut state = self.lock();
        match token {
            Ok(token) => {
                let token = Arc::new(token);
                state.token = Some(Arc::clone(&token));
                state.failed = None;
                Ok(token)
            }
            Err(why) => {
                // What it complained about is the operator's to know, and not the clients'.
                let (program, why) = (visible(self.command.program()), visible(&why));
                tracing::warn!(%program, %why, "the command for a provider's token failed");
                let message = "The command that prints the provider's token has failed; the log says why.";
                let failure = Failure::new(FailureClass::Auth, message);
                state.failed = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    fn token_of(&self, value: Secret, began: Instant) -> Result<Token, String> {
        if value.expose().is_empty() {
            return Err("it printed nothing".to_owned());
        }
        let header = sensitive(&format!("Bearer {}", value.expose()));
        let header = header.map_err(|_| "what it printed cannot be sent in a header".to_owned())?;
        // An answer to the last token may still come.
        let before = self.lock().token.as_ref().map(|token| token.value.clone());
        let secrets = self.secrets.iter().chain(&before).chain([&value]);
        let redactor = Redactor::new(secrets.map(Secret::expose));
        let ttl = self.command.ttl;
        Ok(Token { header, redactor, stale: began + ttl * 4 / 5, over: began + ttl, value })
    }

    /// What the command prints, or why it does not.
    async fn print(&self) -> Result<Secret, String> {
        let (program, arguments) = self.command.command.split_first().ok_or("there is none")?;
        let mut command = Command::new(program);
        command.args(arguments);
        #[cfg(unix)]
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("it does not start: {error}"))?;
        let mut child = Group(child);
        let (stdout, stderr) = (child.0.stdout.take(), child.0.stderr.take());
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let reads = async { tokio::join!(read(stdout, &mut out), read(stderr, &mut errors)) };
        let ended = async {
            let status = child.0.wait().await;
            // What it has started may hold its outputs open: what it printed itself is there by now.
            tokio::time::sleep(LINGER).await;
            status
        };
        let status = read_until(reads, ended).await;
        let printed = Secret::new(String::from_utf8_lossy(&out).trim().to_owned());
        let status = status.map_err(|error| error.to_string())?;
        // One that prints on is ended by the end of its pipe, which says nothing.
        if out.len() >= OUTPUT {
            return Err(TOO_MUCH.to_owned());
        }
        if status.success() {
            return Ok(printed);
        }
        let complaint = self.complaint(&errors, &printed);
        Err(if complaint.is_empty() { status.to_string() } else { format!("{status}: {complaint}") })
    }

    /// The last line of what it complained about, without secrets.
    fn complaint(&self, errors: &[u8], printed: &Secret) -> String {
        let before = self.lock().token.as_ref().map(|token| token.value.clone());
        let secrets = self.secrets.iter().chain(&before).chain([printed]);
        let mut text = errors.to_vec();
        Redactor::new(secrets.map(Secret::expose)).bytes(&mut text, 0);
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        line.trim_end_matches('.').chars().take(COMPLAINT).collect()
    }
}

/// Reads until both have ended, or the command has.
async fn read_until<T>(reads: impl Future<Output = ((), ())>, ended: impl Future<Output = T>) -> T {
    let (reads, mut ended) = (pin!(reads), pin!(ended));
    tokio::select! {
        biased;
        _ = reads => ended.await,
        status = &mut ended => status,
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) {
    if let Some(stream) = stream {
        // What could be read is what there is; how the command ended says the rest.
        let _ = stream.take(OUTPUT as u64).read_to_end(bytes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(command: &[&str]) -> Tokens {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Tokens::new(
            TokenCommand { command, ttl: Duration::from_mins(45) },
            vec![Secret::new("sk-0123456789".to_owned())],
        )
    }

    #[tokio::test]
    async fn a_token_near_its_end_is_used_while_the_next_is_fetched() {
        let tokens = tokens(&["echo", "tok-new-0123456789"]);
        let old = tokens.0.token_of(Secret::new("tok-old-0123456789".to_owned()), Instant::now()).unwrap();
        tokens.0.lock().token = Some(Arc::new(Token { stale: Instant::now(), ..old }));
        assert_eq!(tokens.current().await.unwrap().value.expose(), "tok-old-0123456789");
        let renewed = async {
            while tokens.current().await.unwrap().value.expose() != "tok-new-0123456789" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, renewed).await.unwrap();
        // An answer to the old one may still come.
        let mut text = b"tok-old-0123456789 tok-new-0123456789 sk-0123456789".to_vec();
        tokens.redactor().unwrap().bytes(&mut text, 0);
        assert_eq!(text, b"[redacted] [redacted] [redacted]");
    }

    #[tokio::test]
    async fn a_token_that_has_ended_is_waited_for_and_a_program_that_is_not_there_is_told() {
        let ended = tokens(&["echo", "tok-new-0123456789"]);
        let old = ended.0.token_of(Secret::new("tok-old-0123456789".to_owned()), Instant::now()).unwrap();
        ended.0.lock().token = Some(Arc::new(Token { over: Instant::now(), ..old }));
        assert_eq!(ended.current().await.unwrap().value.expose(), "tok-new-0123456789");
        let missing = tokens(&["/nowhere/godex-token"]).current().await.unwrap_err();
        assert_eq!(missing.class, FailureClass::Auth);
        assert!(!missing.message.contains("nowhere"), "{missing:?}");
        let why = |command: &'static [&'static str]| async move {
            let tokens = tokens(command);
            tokens.0.print().await.and_then(|value| tokens.0.token_of(value, Instant::now())).map(drop).unwrap_err()
        };
        assert!(why(&["/nowhere/godex-token"]).await.starts_with("it does not start: No such file"));
        assert_eq!(why(&["true"]).await, "it printed nothing");
        assert_eq!(why(&["sh", "-c", "head -c 99999 /dev/zero | tr '\\0' x"]).await, TOO_MUCH);
        assert_eq!(why(&["sh", "-c", "echo no sk-0123456789 >&2; exit 3"]).await, "exit status: 3: no [redacted]");
    }

    #[tokio::test]
    async fn a_token_is_used_beyond_its_time_while_there_is_no_other() {
        let failing = tokens(&["false"]);
        let old = failing.0.token_of(Secret::new("tok-old-0123456789".to_owned()), Instant::now()).unwrap();
        failing.0.lock().token = Some(Arc::new(Token { over: Instant::now(), ..old }));
        for _ in 0..2 {
            assert_eq!(failing.current().await.unwrap().value.expose(), "tok-old-0123456789");
        }
        let token = failing.current().await.unwrap();
        assert!(failing.instead_of(&token).await.is_none());
    }

    /// Requests at once are refused at once: one run is for all of them, however long it takes.
    #[tokio::test]
    async fn who_is_refused_while_a_token_is_renewed_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let script = format!("echo x >> {0}; sleep 0.2; echo tok-0123456789-$(wc -l < {0})", runs.display());
        let tokens = tokens(&["sh", "-c", &script]);
        let first = tokens.current().await.unwrap();
        let others = futures_util::future::join_all((0..8).map(|_| tokens.instead_of(&first))).await;
        for other in others {
            assert_eq!(other.unwrap().value.expose(), "tok-0123456789-2");
        }
        // Refused again at once, it is refused for another reason.
        let second = tokens.current().await.unwrap();
        assert!(tokens.instead_of(&second).await.is_none());
        assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 2);
    }

    /// Some start something that stays: what they printed counts when they have ended themselves.
    #[tokio::test]
    async fn what_a_command_starts_is_not_waited_for() {
        let tokens = tokens(&["sh", "-c", "echo tok-0123456789; sleep 600 &"]);
        assert_eq!(tokens.current().await.unwrap().value.expose(), "tok-0123456789");
    }
}
