//! Real git over smart HTTP: `git http-backend` on the bare repository, behind the same tokens.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use crate::github::deeds;
use crate::github::state::{Permission, TokenKind};

use super::caller::Caller;
use super::exchange::{Answer, Request};
use super::listener::Shared;

/// A request of git: the repository, and what follows its name.
pub struct GitRequest {
    pub owner: String,
    pub name: String,
    pub rest: String,
}

impl GitRequest {
    pub fn read(request: &Request) -> Option<Self> {
        let mut parts = request.path.trim_start_matches('/').splitn(3, '/');
        let (owner, name, rest) = (parts.next()?, parts.next()?, parts.next()?);
        if !["info/refs", "git-upload-pack", "git-receive-pack"].contains(&rest) {
            return None;
        }
        let name = name.strip_suffix(".git").unwrap_or(name);
        Some(Self { owner: owner.to_owned(), name: name.to_owned(), rest: rest.to_owned() })
    }

    /// The name under which it is counted.
    pub fn route(&self, request: &Request) -> &'static str {
        match (self.pushes(request), self.rest.as_str()) {
            (true, "info/refs") => "transport/push-discover",
            (true, _) => "transport/push",
            (false, "info/refs") => "transport/fetch-discover",
            (false, _) => "transport/fetch",
        }
    }

    pub fn pushes(&self, request: &Request) -> bool {
        self.rest == "git-receive-pack" || request.query.contains("service=git-receive-pack")
    }
}

pub fn handle(world: &Shared, git: &GitRequest, request: &Request) -> Answer {
    let (folder, home, login) = {
        let world = world.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || plain(401, "Authentication required").with("www-authenticate", "Basic realm=\"GitHub\"");
        let caller = match Caller::read(&world, request) {
            Ok(caller) => caller,
            Err(_) => return ask(),
        };
        let found = world.home(&git.owner, &git.name).or_else(|| world.former_home(&git.owner, &git.name));
        let Some(home) = found else {
            return if matches!(caller, Caller::Nobody) { ask() } else { plain(404, "Repository not found.") };
        };
        let repo = world.repo(home);
        let permission = repo.permission(&caller.login());
        if matches!(caller, Caller::Nobody) && (repo.private || git.pushes(request)) {
            return ask();
        }
        if permission < Permission::Read {
            return plain(404, "Repository not found.");
        }
        let may_write = match &caller {
            Caller::Token(token) => match &token.kind {
                TokenKind::Classic { scopes } => scopes.iter().any(|scope| scope == "repo"),
                _ => !token.denied.iter().any(|denied| denied == "transport/push"),
            },
            _ => false,
        };
        if git.pushes(request) && (permission < Permission::Write || !may_write) {
            let words = format!("Permission to {} denied to {}.", repo.full_name(), caller.login());
            return plain(403, &words);
        }
        (world.homes[home].git.clone(), home, caller.login())
    };
    let lock = || world.lock().unwrap_or_else(PoisonError::into_inner);
    // A pull request shows what was pushed as soon as git does: whoever sees the commit may act on it.
    let pushing = (git.rest == "git-receive-pack").then(lock);
    let answer = backend(&folder, git, request, &login);
    let mut world = pushing.unwrap_or_else(lock);
    deeds::refs::sync(&mut world, home, &login);
    answer
}

fn plain(status: u16, words: &str) -> Answer {
    Answer::raw(status, "text/plain", words.as_bytes().to_vec())
}

fn backend(folder: &std::path::Path, git: &GitRequest, request: &Request, login: &str) -> Answer {
    let header = |name: &str| request.header(name).unwrap_or("").to_owned();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", folder.parent().unwrap())
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{}/{}", folder.file_name().unwrap().display(), git.rest))
        .env("QUERY_STRING", &request.query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", login)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let body = request.body.clone();
    // The backend answers while it still reads, so writing needs a thread of its own.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&body);
    });
    let output = child.wait_with_output().unwrap();
    let _ = writer.join();
    let split = output.stdout.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.stdout.len());
    let head = String::from_utf8_lossy(&output.stdout[..split]).into_owned();
    let bytes = output.stdout.get(split + 4..).unwrap_or_default().to_vec();
    let mut answer = Answer::raw(200, "", bytes);
    for (name, value) in head.lines().filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("status") {
            answer.status = value.trim().get(..3).and_then(|code| code.parse().ok()).unwrap_or(500);
        } else {
            answer = answer.with(&name.to_ascii_lowercase(), value.trim());
        }
    }
    answer
}
