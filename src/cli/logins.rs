//! What `doctor` reports about logins: the login shell, whose environment is read at every start, and the user's credentials that a worker
//! of the same user could read.

use std::path::Path;

use crate::config::worker::WorkerPlace;
use crate::launcher::login::{self, Patience};
use crate::launcher::readable_logins;
use crate::runtime::assembly;
use crate::workflow::Loaded;

use super::block_on;
use super::context::Context;
use super::doctor::Report;

/// Reports on the login shell. Returns the `PATH` that workers will have.
pub fn shell(context: &Context, loaded: &Loaded, report: &mut Report) -> String {
    let own = context.env.vars();
    let secrets = assembly::secrets(loaded);
    let read = block_on(async { Ok(login::read(own, &secrets, Patience::default()).await) });
    let path = own.get("PATH").cloned().unwrap_or_default();
    match read {
        Ok(Ok(login)) => {
            let took = login.took.as_millis();
            report.ok(
                "login shell",
                format!("{} gives the environment, once per start ({took} ms)", login.shell.display()),
            );
            login.environment.get("PATH").cloned().unwrap_or(path)
        }
        Ok(Err(error)) => {
            report.warn("login shell", format!("{error}; workers get the runner's own environment"), error.fix());
            path
        }
        Err(_) => path,
    }
}

pub fn same_user(context: &Context, loaded: &Loaded, report: &mut Report) {
    let Some(home) = context.env.vars().get("HOME").map(Path::new) else { return };
    let found = readable_logins(home);
    if loaded.settings.worker.place != WorkerPlace::Local || found.is_empty() {
        return;
    }
    let names: Vec<String> = found
        .iter()
        .map(|path| {
            path.strip_prefix(home).map_or_else(|_| path.display().to_string(), |rest| format!("~/{}", rest.display()))
        })
        .collect();
    report.warn(
        "same user",
        format!("an agent runs as you: nothing but its own sandbox keeps it from reading {}", names.join(", ")),
        "a user of its own for dirigent, a container, or the agent's sandbox; docs/security.md says what is enforced",
    );
}
