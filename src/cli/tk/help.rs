//! `help`: the text for people, and a shorter one for workers.

use super::plugins;
use super::session::{TkCall, TkOutput};

pub fn help(session: &TkCall<'_>) -> TkOutput {
    let mut text = HELP.replace("{tk}", &session.program);
    let plugins = plugins::described(session);
    if !plugins.is_empty() {
        text.push_str("\nInstalled plugins:\n");
        for (name, description) in plugins {
            text.push_str(&format!("  {name:<24} {description}\n"));
        }
    }
    TkOutput::text(text)
}

pub fn worker_help(session: &TkCall<'_>) -> TkOutput {
    TkOutput::text(WORKER_HELP.replace("{tk}", &session.program))
}

const HELP: &str = "\
{tk} - tickets as Markdown files, with dependencies

Usage: {tk} <command> [args]

Writing:
  create [title] [options] Create a ticket, prints its id
    -d, --description      Description text
    --design               Design notes
    --acceptance           Acceptance criteria
    -t, --type             Type (bug|feature|task|epic|chore) [default: task]
    -p, --priority         Priority 0-4, 0 is highest [default: 2]
    -a, --assignee         Assignee [default: git user.name]
    --external-ref         Reference elsewhere (gh-123, ENG-456)
    --parent               Parent ticket
    --tags                 Tags, separated by commas
  add [title] [options]    Like create, but -t takes tags; --start begins at once
  start <id>               Status in_progress
  close <id>               Status closed (--status failed [why]: closed without success)
  reopen <id>              Status open
  status <id> <status>     Status open, in_progress or closed
  claim <id> [-a NAME]     Take a ticket; exit 0 yours, 3 somebody else's, 4 not ready
  claim --next [-T TAG]    Take the first ticket that is ready
  done <id> [summary]      Note the summary and close
  add-note <id> [text]     Append a note with the time (text or stdin); also: comment
  edit <id>                Open the file in $EDITOR
  tag <id> +x -y           Put a tag on, take one off
  dep <id> <dep-id>        <id> waits for <dep-id>
  undep <id> <dep-id>      It no longer does
  link <id> <id> [id...]   Link tickets with one another
  unlink <id> <target-id>  Remove a link
  import beads|github|linear-csv [FILE]
                           Import tickets (FILE or stdin); none is overwritten
  migrate-beads [FILE]     Import from .beads/issues.jsonl

Reading (each takes --json):
  ls|list [--status X] [-a X] [-T X]   All tickets
  ready [-a X] [-T X]      Open and in-progress tickets that wait for nothing
  blocked [-a X] [-T X]    Those that wait, and for what
  closed [--limit N]       The last ones closed (20)
  show <id>                One ticket, with its blockers, children and links
  dep tree [--full] <id>   What it waits for, as a tree
  dep cycle                Tickets that wait for one another
  board                    Columns
  graph [id] [--format text|dot|mermaid] [--all]
                           The dependency graph with its critical path
  query [jq-filter]        Front matter as JSON lines, all strings

  completion bash|zsh|fish A script for your shell
  super <cmd> [args]       The built-in command, even if a plugin has its name

Programs tk-<cmd> and ticket-<cmd> on the PATH are commands too. They get
TICKETS_DIR and TK_SCRIPT; \"$TK_SCRIPT\" super <cmd> calls the built-in one.

Tickets are files in .tickets/, found here or above, or in $TICKETS_DIR.
A part of an id is enough where only one ticket has it.
";

const WORKER_HELP: &str = "\
{tk} - your ticket, through the runner

  {tk} show                The ticket you work on
  {tk} show --new          Only what people said since you last looked
  {tk} comment TEXT        Say something on the ticket (text or stdin); also: add-note
  {tk} evidence --type command --command CMD --exit-code N [--output TEXT]
  {tk} evidence --type test --passed N --failed N
  {tk} evidence --type file --path FILE [--action created|modified|deleted]
  {tk} evidence --type note TEXT
                           Record what you did, for whoever checks it
  {tk} answer REMARK fixed|explained|declined TEXT
                           What became of a remark that you were told
  {tk} plan FILE           Say what you are going to do (- is stdin); nobody has to approve it
  {tk} done SUMMARY        The work is finished
  {tk} blocked REASON      You cannot go on without a person
  {tk} failed WHY          It cannot be done, and no person can help
  {tk} api [METHOD] PATH [NAME=VALUE...] [JSON]
                           Ask the tracker's own API, where the workflow allows it
  {tk} create TITLE [-d TEXT] [--tags a,b] [-p 0-4]
                           A follow-up ticket, where the workflow allows it
";
