//! `receipt`: shows what was checked before a commit was merged (the receipt in its git note), and verifies that this note is genuine.

use serde_json::json;

use crate::domain::ids::{CommitId, RunId};
use crate::domain::job::{DoneHow, Job, Stage};
use crate::domain::statement::{NotedReceipt, Statement, receipts_in};
use crate::forge::holds_work;
use crate::runtime::{RunnerFolder, assembly};
use crate::worker::receipts::{kept_receipt, receipt_files};
use crate::workflow::Loaded;
use crate::workspace::Workspaces;
use crate::workspace::notes::NOTES_REF;
use crate::workspace::repo::RepoPlace;
use crate::workspace::signing::SignatureVerdict;

use super::Failure;
use super::args::{ReceiptArgs, ReceiptCommand, ReceiptOfArgs};
use super::block_on;
use super::context::Context;
use super::output;

pub fn receipt(context: &Context, args: &ReceiptArgs) -> Result<(), Failure> {
    let loaded = context.load(None)?;
    let place = context.place(&loaded);
    let workspaces = assembly::workspaces(&loaded.settings)?;
    let repo = RepoPlace::find(&loaded.settings.workspace.repo).map_err(Failure::plain)?;
    let (ReceiptCommand::Show(of) | ReceiptCommand::Verify(of)) = &args.command;
    let commit = resolve(&repo, &of.commit)?;
    block_on(async {
        let note = workspaces.receipt_note(&commit).await.map_err(Failure::plain)?;
        let note = note.ok_or_else(|| missing(&loaded, &place, &commit))?;
        let found = receipts_in(&note);
        if found.is_empty() {
            return Err(Failure::Contradicted(format!(
                "the note of {} in {NOTES_REF} holds no receipt that can be read: it was edited, or is not ours\n  look: git notes --ref=dirigent show {commit}",
                commit.short()
            )));
        }
        match &args.command {
            ReceiptCommand::Show(of) => show(&commit, &found, of),
            ReceiptCommand::Verify(of) => {
                let mut findings = Vec::new();
                for one in &found {
                    findings.extend(judge(&workspaces, &repo, &place, &commit, one).await?);
                }
                tell(&commit, &findings, of)
            }
        }
    })
}

fn resolve(repo: &RepoPlace, name: &str) -> Result<CommitId, Failure> {
    let opened = repo.open().map_err(Failure::plain)?;
    let found = opened.revparse_single(name).and_then(|object| object.peel_to_commit());
    match found {
        Ok(commit) => Ok(CommitId::new(commit.id().to_string())),
        Err(_) => Err(Failure::NotFound(format!("`{name}` is not a commit of {}", repo.cwd().display()))),
    }
}

/// Returns the failure for a commit without a note. If the runner still has its own copy of the receipt, the failure says how to restore
/// the note.
fn missing(loaded: &Loaded, place: &RunnerFolder, commit: &CommitId) -> Failure {
    let short = commit.short();
    let nothing = format!("{short} has no receipt in {NOTES_REF}");
    let fetch = match assembly::forge_kind(&loaded.settings) {
        crate::config::policy::ForgeKind::Github => {
            format!("\n  if another machine merged it: git fetch origin {NOTES_REF}:{NOTES_REF}")
        }
        _ => String::new(),
    };
    let kept = merged_as(place, commit).ok().flatten().and_then(|job| job.delivery.made_by);
    let file = kept.map(|run| receipt_files(&place.state_dir, &run).0).filter(|file| file.exists());
    Failure::NotFound(match file {
        Some(file) => format!(
            "the note of {short} in {NOTES_REF} is gone; the runner kept the receipt\n  put it back: cat {0} $(ls {0}.sig 2>/dev/null) | git notes --ref=dirigent add -F - {commit}",
            file.display()
        ),
        None => format!("{nothing}: it was not merged by Dirigent, or its note was removed{fetch}"),
    })
}

/// Finds the job that was merged as this commit, also among archived jobs.
fn merged_as(place: &RunnerFolder, commit: &CommitId) -> Result<Option<Job>, Failure> {
    let is_it = |job: &Job| matches!(&job.stage, Stage::Done { how: DoneHow::Merged { commit: Some(merged), .. }, .. } if merged == commit);
    let ledger = place.read_ledger()?;
    let live = ledger.load()?.jobs.values().find(|job| is_it(job)).cloned();
    Ok(match live {
        Some(job) => Some(job),
        None => ledger.archived(usize::MAX)?.into_iter().find(|job| is_it(job)),
    })
}

fn show(commit: &CommitId, found: &[NotedReceipt<'_>], args: &ReceiptOfArgs) -> Result<(), Failure> {
    if args.json {
        let all = found.iter().map(|one| {
            let statement = serde_json::from_str::<serde_json::Value>(one.payload).unwrap_or_default();
            json!({ "statement": statement, "signature": one.signature })
        });
        return output::print_json(&all.collect::<Vec<_>>());
    }
    let texts: Vec<String> = found
        .iter()
        .map(|one| match &one.statement {
            Some(statement) => words(commit, statement, one.signature.is_some()),
            None => format!("the receipt of {} cannot be read: it was edited", commit.short()),
        })
        .collect();
    output::print(&texts.join("\n\n"))
}

fn words(commit: &CommitId, statement: &Statement, signed: bool) -> String {
    let receipt = &statement.predicate;
    let short = |head: &CommitId| head.short().to_owned();
    let mut lines = vec![
        format!("{}: {}", receipt.ticket.key, receipt.ticket.title),
        format!("commit   {commit}"),
        format!("result   {}", format!("{:?}", receipt.result).to_lowercase()),
        format!("head     {}", receipt.head.as_ref().map_or("unknown".to_owned(), short)),
    ];
    for gate in &receipt.gates {
        let how = match (gate.passed, gate.exit_code) {
            (true, _) => "passed".to_owned(),
            (false, _) if gate.timed_out => "timed out".to_owned(),
            (false, Some(code)) => format!("failed with exit code {code}"),
            (false, None) => "ended by a signal".to_owned(),
        };
        lines.push(format!("gate     {}: {how} ({} ms): {}", gate.name, gate.duration_ms, output::line(&gate.command)));
    }
    if let Some(pr) = &receipt.pull_request {
        let by = match pr.merged_by_us {
            Some(true) => ", merged by Dirigent",
            Some(false) => ", merged by a person",
            None => "",
        };
        let approved = pr.approved_head.as_ref().map(|head| format!(", approved at {head}")).unwrap_or_default();
        lines.push(format!("request  #{} into {}{by}{approved}; checks: {}", pr.number, pr.base_branch, pr.checks));
    }
    lines.extend(receipt.facts.iter().map(|fact| format!("fact     {fact}")));
    lines.extend(receipt.run.iter().map(|run| format!("run      {run}")));
    lines.push(format!("finished {}", receipt.finished_at));
    lines.push(format!("signed   {}", if signed { "yes (`dirigent receipt verify` checks it)" } else { "no" }));
    lines.join("\n")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Holds,
    Unproven,
    Contradicted,
}

struct Judged {
    weight: Weight,
    text: String,
}

/// Collects everything that speaks for or against one receipt: the runner's copy, the signature, and the commit itself.
async fn judge(
    workspaces: &Workspaces,
    repo: &RepoPlace,
    place: &RunnerFolder,
    commit: &CommitId,
    one: &NotedReceipt<'_>,
) -> Result<Vec<Judged>, Failure> {
    let mut found = Vec::new();
    let mut say = |weight: Weight, text: String| found.push(Judged { weight, text });
    let Some(statement) = &one.statement else {
        say(Weight::Contradicted, "the receipt cannot be read: it was edited".to_owned());
        return Ok(found);
    };
    if !statement.is_about(commit) {
        say(Weight::Contradicted, format!("the receipt is about another commit than {}", commit.short()));
    }
    let run = statement.predicate.run.as_ref().map(|run| RunId::new(run.clone()));
    let kept = run.map(|run| kept_receipt(&place.state_dir, &run)).transpose()?.flatten();
    let kept = kept.filter(|(text, _)| serde_json::from_str(text).is_ok_and(|kept: Statement| kept.is_about(commit)));
    match &kept {
        Some((text, _)) if text != one.payload => {
            say(Weight::Contradicted, "the receipt was edited: it is not what the runner kept".to_owned());
        }
        Some((_, Some(_))) if one.signature.is_none() => {
            say(Weight::Contradicted, "the signature was taken off: the runner kept a signed receipt".to_owned());
        }
        Some(_) => say(Weight::Holds, "it is what the runner kept".to_owned()),
        None => {}
    }
    match one.signature {
        None if kept.is_none() => say(
            Weight::Unproven,
            "it is not signed, and this machine has no copy of it: anybody could have written it".to_owned(),
        ),
        None => say(Weight::Holds, "it is not signed".to_owned()),
        Some(signature) => match workspaces.check_receipt(one.payload, signature).await {
            Ok(SignatureVerdict::Good { by }) => say(Weight::Holds, format!("signed by {by}")),
            Ok(SignatureVerdict::Bad) => {
                say(
                    Weight::Contradicted,
                    "the signature does not fit: the receipt was edited after it was signed".to_owned(),
                );
            }
            Ok(SignatureVerdict::UnknownKey { key, because }) => {
                say(Weight::Unproven, format!("signed with a key that is not known here ({key}): {because}"));
            }
            Ok(SignatureVerdict::Unreadable { because }) => {
                say(Weight::Unproven, format!("the signature cannot be checked: {because}"));
            }
            Err(error) => say(Weight::Unproven, format!("the signature cannot be checked: {error}")),
        },
    }
    let merged = statement.predicate.pull_request.as_ref().map(|pr| &pr.head).or(statement.predicate.head.as_ref());
    if let Some(head) = merged {
        match holds_work(repo, commit, head).map_err(Failure::plain)? {
            Some(true) => say(Weight::Holds, format!("the commit holds the work of {}", head.short())),
            Some(false) => {
                say(Weight::Contradicted, format!("the commit does not hold the work of {}", head.short()));
            }
            None => say(Weight::Holds, format!("{} is not in this repository any more; not compared", head.short())),
        }
    }
    Ok(found)
}

fn tell(commit: &CommitId, findings: &[Judged], args: &ReceiptOfArgs) -> Result<(), Failure> {
    let worst = findings.iter().map(|finding| finding.weight).max().unwrap_or(Weight::Unproven);
    let name = |weight: Weight| match weight {
        Weight::Holds => "holds",
        Weight::Unproven => "unproven",
        Weight::Contradicted => "contradicted",
    };
    if args.json {
        let rows = findings.iter().map(|one| json!({ "verdict": name(one.weight), "text": one.text }));
        let rows: Vec<_> = rows.collect();
        output::print_json(&json!({ "commit": commit, "verdict": name(worst), "findings": rows }))?;
    } else {
        let lines = findings.iter().map(|one| format!("{:<13}{}", name(one.weight), one.text));
        output::print(&lines.collect::<Vec<_>>().join("\n"))?;
    }
    let against = findings.iter().filter(|one| one.weight == worst).map(|one| one.text.as_str());
    let sentence = format!("receipt of {}: {}", commit.short(), against.collect::<Vec<_>>().join("; "));
    match worst {
        Weight::Holds => Ok(()),
        Weight::Unproven => Err(Failure::Unproven(sentence)),
        Weight::Contradicted => Err(Failure::Contradicted(sentence)),
    }
}
