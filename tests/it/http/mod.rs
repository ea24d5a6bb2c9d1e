//! The API as a client sees it: the built binary serves a board, and something speaks HTTP with it.

mod bad_input;
mod changes;
pub mod client;
mod contract;
mod documented;
mod events;
mod logs;
mod reads;
mod webhooks;

use client::{Answer, ServedBoard};

/// Commits a file named after the ticket and says done.
const GOOD: &str = "set -eu
echo work > \"$DIRIGENT_TICKET_KEY.txt\"
git add -A
git commit -qm \"Do $DIRIGENT_TICKET_KEY\"
tk done 'it is done'
";

const ASKS: &str = "tk blocked 'which colour?'\n";

/// Works until it is stopped.
const ENDLESS: &str = "tk comment 'I am at it'\nwhile :; do echo alive; sleep 1; done\n";

/// The front matter under which finished work waits for a person.
const APPROVED: &str = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass}\n";
