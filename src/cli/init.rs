//! `init`: writes a commented WORKFLOW.md for this repository. Never overwrites an existing one.

use std::io::Write;
use std::path::Path;

use crate::config::policy::ForgeKind;
use crate::config::pr::PrSettings;
use crate::config::tracker::slug_of_remote;
use crate::launcher::find_program;
use crate::workspace::Workspaces;

use super::Failure;
use super::args::InitArgs;
use super::context::Context;
use super::output;

const TEMPLATE: &str = include_str!("../../templates/init/WORKFLOW.md");
/// The template for a clone of a GitHub repository: the repository's issues are the board, and people merge.
const GITHUB_TEMPLATE: &str = include_str!("../../templates/init/github.md");
/// A command that stands in for an agent: it does no useful work but goes through all steps, so that a first run succeeds before an agent
/// is chosen.
pub const STAND_IN: &str = "mkdir -p notes && cp \"$DIRIGENT_PROMPT_FILE\" \"notes/$DIRIGENT_TICKET_KEY.md\" && git add notes && git commit -qm \"Note $DIRIGENT_TICKET_KEY\" && tk done \"a stand-in wrote notes/$DIRIGENT_TICKET_KEY.md; name a real agent in WORKFLOW.md\"";

/// Agents that can be run as a plain command (program, command line), in the order in which they are searched for.
const KNOWN: [(&str, &str); 4] = [
    ("claude", "claude -p --permission-mode acceptEdits --allowedTools=Bash"),
    ("codex", "codex exec --sandbox workspace-write -"),
    ("opencode", "opencode run --dir ."),
    ("pi", "pi -p"),
];

pub fn init(context: &Context, args: &InitArgs) -> Result<(), Failure> {
    let path = context.new_workflow_path();
    let repo = path.parent().unwrap_or(&context.cwd);
    let branch = Workspaces::current_branch(repo).map_err(Failure::plain)?;
    let (agent, remark) = agent(context, args);
    if let Some(slug) = github_slug(repo) {
        // Work is merged into the repository's default branch, whichever branch is checked out here.
        let branch = Workspaces::default_branch_of_origin(repo).unwrap_or(branch);
        let text = GITHUB_TEMPLATE
            .replace("{{repo}}", &slug)
            .replace("{{base}}", &branch)
            .replace("{{agent_remark}}", &remark)
            .replace("{{agent}}", &yaml_string(&agent));
        write_new(&path, &text)?;
        std::fs::create_dir_all(repo.join(".dirigent"))?;
        return output::print(&format!(
            "wrote {}\n  tracker: the issues of {slug} with the label `agent`\n  agent:   {remark}\n  forge:   github, base {branch}\n\nnext:\n  export GITHUB_TOKEN=...   (or write `token: gh`)\n  dirigent doctor --fix\n  dirigent run",
            path.display(),
        ));
    }
    let text = TEMPLATE
        .replace("{{base}}", &branch)
        .replace("{{forge}}", "local")
        .replace("{{agent_remark}}", &remark)
        .replace("{{agent}}", &yaml_string(&agent));
    write_new(&path, &text)?;
    let tickets = repo.join(".tickets");
    std::fs::create_dir_all(&tickets)?;
    // Lock files belong to this machine only; tickets are committed.
    match write_new(&tickets.join(".gitignore"), ".*\n!.gitignore\n") {
        Err(_) if tickets.join(".gitignore").exists() => {}
        result => result?,
    }
    // The folder of the kill-switch file must exist, so that `touch .dirigent/pause` works in an emergency.
    std::fs::create_dir_all(repo.join(".dirigent"))?;
    output::print(&format!(
        "wrote {}\n  tracker: tk files in {}\n  agent:   {remark}\n  forge:   local, base {branch}\n\nnext:\n  dirigent doctor\n  dirigent tk create \"your first ticket\"\n  dirigent run --once",
        path.display(),
        tickets.display(),
    ))
}

/// Returns `owner/name` of the remote if it is on github.com.
fn github_slug(repo: &Path) -> Option<String> {
    let url = Workspaces::remote_url(repo)?;
    let on_github = PrSettings::default().resolve_forge(Some(&url)) == ForgeKind::Github;
    slug_of_remote(&url).filter(|_| on_github)
}

fn agent(context: &Context, args: &InitArgs) -> (String, String) {
    if let Some(command) = &args.agent {
        return (command.clone(), format!("`{command}`, as you said"));
    }
    let path = context.env.vars().get("PATH").cloned().unwrap_or_default();
    for (program, command) in KNOWN {
        if find_program(program, &path).is_some() {
            return (command.to_owned(), format!("`{program}` was found on the PATH"));
        }
    }
    (STAND_IN.to_owned(), "none was found; a stand-in goes the whole way until you name one (exec.command)".to_owned())
}

/// Quotes text as a YAML string. Every JSON string is one.
fn yaml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            Failure::plain(format!(
                "{} is there already and stays as it is\n  fix: edit it, or move it away first",
                path.display()
            ))
        } else {
            Failure::plain(format!("{} cannot be written: {error}", path.display()))
        }
    })?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}
