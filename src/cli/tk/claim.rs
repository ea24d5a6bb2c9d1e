//! `claim`: takes a ticket for one assignee. Of several concurrent claims only one succeeds; the exit code tells how it went.

use super::arguments::{Argument, Arguments, tags};
use super::failure::{CLAIM_LOST, CLAIM_NOT_READY, Failure};
use super::session::{TkCall, TkOutput};
use super::tickets::{Tickets, by_priority, shown_status};
use crate::tracker::tk::{LockedStore, Record, Store};

/// `claim <id> [-a NAME]`, or `claim --next [-T TAG]` for the first ticket that is ready and free.
pub fn claim(session: &TkCall<'_>, arguments: &[String]) -> Result<TkOutput, Failure> {
    let mut walk = Arguments::new(arguments);
    let (mut wanted, mut who, mut next, mut wanted_tags) = (None, None, false, Vec::new());
    while let Some(argument) = walk.next() {
        match argument {
            Argument::Word(word) => wanted = Some(word),
            Argument::Option(option) => match option.name {
                "-a" | "--assignee" => who = Some(walk.value(&option)?.to_owned()),
                "-T" | "-t" | "--tag" | "--tags" => wanted_tags.extend(tags(walk.value(&option)?)),
                "--next" => {
                    option.plain()?;
                    next = true;
                }
                _ => return Err(option.unknown()),
            },
        }
    }
    let who = who
        .or_else(|| session.git_name())
        .filter(|who| !who.is_empty())
        .ok_or_else(|| Failure::said("who claims? Say so with -a NAME, or set git's user.name"))?;
    if who.chars().any(char::is_control) {
        return Err(Failure::said("the name after -a must be one line without control characters"));
    }
    let store = session.store()?;
    match (wanted, next) {
        (Some(id), false) if wanted_tags.is_empty() => {
            let id = store.resolve(id)?;
            let locked = store.lock()?;
            let tickets = Tickets::load(session, &store)?;
            take(&locked, &tickets, &id, &who)
        }
        (None, true) => take_next(session, &store, &wanted_tags, &who),
        _ => Err(Failure::Usage(format!(
            "Usage: {0} claim <id> [-a NAME]\n       {0} claim --next [-T TAG] [-a NAME]",
            session.program
        ))),
    }
}

fn take_next(session: &TkCall<'_>, store: &Store, tags: &[&str], who: &str) -> Result<TkOutput, Failure> {
    let locked = store.lock()?;
    let tickets = Tickets::load(session, store)?;
    let free = |record: &&Record| {
        record.status == "open"
            && tickets.is_ready(record)
            && record.assignee.as_deref().is_none_or(|assignee| assignee == who)
            && tags.iter().all(|tag| record.tags.iter().any(|own| own == tag))
    };
    let mut candidates: Vec<&Record> = tickets.records.iter().filter(free).collect();
    candidates.sort_unstable_by(|a, b| by_priority(a, b));
    match candidates.first() {
        Some(record) => take(&locked, &tickets, &record.id, who),
        None => Err(Failure::Said { sentence: "no ticket is ready to be claimed".into(), code: CLAIM_NOT_READY }),
    }
}

fn take(locked: &LockedStore<'_>, tickets: &Tickets, id: &str, who: &str) -> Result<TkOutput, Failure> {
    let refused = |code: u8, sentence: String| Failure::Said { sentence, code };
    let outcome = locked.update(id, |doc| {
        let record = Record::read(id, doc);
        let other = record.assignee.as_deref().filter(|assignee| *assignee != who);
        if let (Some(other), true) = (other, record.is_active()) {
            return Ok(Err(refused(CLAIM_LOST, format!("{id} belongs to {other}"))));
        }
        if record.status == "in_progress" && record.assignee.as_deref() == Some(who) {
            return Ok(Ok(()));
        }
        if record.status == "in_progress" {
            return Ok(Err(refused(CLAIM_LOST, format!("{id} is in progress already, by nobody in particular"))));
        }
        if record.status != "open" {
            return Ok(Err(refused(CLAIM_NOT_READY, format!("{id} is {}, not open", shown_status(&record)))));
        }
        let unmet = tickets.unmet(&record);
        if !unmet.is_empty() {
            return Ok(Err(refused(CLAIM_NOT_READY, format!("{id} waits for {}", unmet.join(", ")))));
        }
        doc.set_status("in_progress");
        doc.set_text("assignee", who);
        Ok(Ok(()))
    })?;
    outcome?;
    Ok(TkOutput::line(format!("Claimed {id} for {who}")))
}
