//! What `doctor` checks on a GitHub board, and what `doctor --fix` creates there.

use std::io::{IsTerminal, Write};

use crate::engine::permit::by_hand;
use crate::runtime::assembly;
use crate::tracker::TrackerError;
use crate::tracker::github::{GithubTracker, SetupReport};
use crate::workflow::Loaded;

use super::Failure;
use super::args::DoctorArgs;
use super::block_on;
use super::doctor::Report;

const MANUAL: &str = "docs/trackers/github.md names the exact permissions";

pub fn board(loaded: &Loaded, args: &DoctorArgs, report: &mut Report) {
    let tracker = match assembly::github_board(&loaded.settings) {
        Ok(tracker) => tracker,
        Err(error) => return report.problem("tracker", format!("github: {error}"), MANUAL),
    };
    // Both calls run in one async runtime, because connections belong to the runtime that opened them.
    let looked = block_on(async {
        let setup = tracker.check_setup().await;
        let labels = match &setup {
            Ok(_) => labels(&tracker, args).await,
            Err(_) => Ok(Labels::default()),
        };
        Ok::<_, Failure>((setup, labels))
    });
    let Ok((setup, labels)) = looked else { return };
    match setup {
        Ok(setup) => tell(&setup, report),
        Err(error) => {
            let fix = match &error {
                TrackerError::Auth(_) => format!("make a new token; {MANUAL}"),
                TrackerError::RateLimited { .. } | TrackerError::Later { .. } => "wait, and ask again".to_owned(),
                TrackerError::Request(_) => "check the network and tracker.provider.api_url".to_owned(),
                _ => format!("give the token access; {MANUAL}"),
            };
            return report.problem("tracker", format!("github: {error}"), fix);
        }
    }
    match labels {
        Ok(labels) => {
            if !labels.made.is_empty() {
                report.ok("labels", format!("made {}", labels.made.join(", ")));
            }
            for label in labels.missing {
                let words = format!("the repository has no label `{label}`, which the file names");
                report.warn("labels", words, "dirigent doctor --fix makes it");
            }
        }
        Err(error) => report.problem("labels", error.to_string(), MANUAL),
    }
}

fn tell(setup: &SetupReport, report: &mut Report) {
    let (repository, account, role) = (&setup.repository, &setup.account, setup.role);
    let kind = if setup.is_private { "private" } else { "public" };
    if setup.wrong.is_empty() {
        report.ok("tracker", format!("github: the issues of {repository} ({kind}), as {account} ({role})"));
    }
    for wrong in &setup.wrong {
        report.problem("tracker", format!("github: {wrong}"), MANUAL);
    }
    for doubt in &setup.doubts {
        report.warn("tracker", format!("github: {doubt}"), MANUAL);
    }
    if setup.shared_account {
        let words = format!(
            "{account} is taken for a person's account too: GitHub takes no review of one's own pull request, so approve with a comment `/dirigent approve`, with `dirigent approve TICKET` or an approval state"
        );
        report.ok("account", words);
    } else {
        report.ok("account", format!("{account} is ours alone: a review by anybody else with write access approves, and so do `/dirigent approve` and `dirigent approve TICKET`"));
    }
}

#[derive(Default)]
struct Labels {
    missing: Vec<String>,
    made: Vec<String>,
}

async fn labels(tracker: &GithubTracker, args: &DoctorArgs) -> Result<Labels, TrackerError> {
    let mut labels = Labels { missing: tracker.labels_missing().await?, made: Vec::new() };
    if !args.fix || labels.missing.is_empty() || !(args.yes || agreed(&labels.missing)) {
        return Ok(labels);
    }
    for label in std::mem::take(&mut labels.missing) {
        tracker.create_label(&by_hand(), &label).await?;
        labels.made.push(label);
    }
    Ok(labels)
}

/// Asks for confirmation. Returns `false` without asking if stdin is not a terminal.
fn agreed(missing: &[String]) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    eprint!("make the missing labels {}? [y/N] ", missing.join(", "));
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
