//! Imports Linear's CSV export.

use super::csv;
use super::{Foreign, one_line, references, tags, time};
use crate::cli::tk::failure::Failure;

pub fn parse(text: &str) -> Result<Vec<Foreign>, Failure> {
    let rows = csv::rows(text)?;
    let Some((header, rows)) = rows.split_first() else {
        return Err(Failure::said("the CSV is empty"));
    };
    let header: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
    for needed in ["id", "title"] {
        if !header.iter().any(|name| name == needed) {
            return Err(Failure::said(format!("the CSV has no '{needed}' column; is it Linear's issue export?")));
        }
    }
    Ok(rows
        .iter()
        .map(|row| Row { header: &header, row })
        .filter(|row| !row.get("id").is_empty())
        .map(ticket)
        .collect())
}

#[derive(Clone, Copy)]
struct Row<'a> {
    header: &'a [String],
    row: &'a [String],
}

impl<'a> Row<'a> {
    fn get(self, column: &str) -> &'a str {
        let at = self.header.iter().position(|name| name == column);
        at.and_then(|at| self.row.get(at)).map(|value| value.trim()).unwrap_or_default()
    }

    fn list(self, column: &str) -> Vec<String> {
        self.get(column).split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    }
}

fn ticket(row: Row<'_>) -> Foreign {
    let mut ticket = Foreign::new(one_line(row.get("id")), row.get("title"));
    let state = row.get("status").to_lowercase();
    let cancelled = !row.get("canceled").is_empty() || matches!(state.as_str(), "canceled" | "cancelled" | "duplicate");
    let finished = !row.get("completed").is_empty() || matches!(state.as_str(), "done" | "closed" | "completed");
    let started = matches!(state.as_str(), "in progress" | "in review" | "started");
    let draft = &mut ticket.draft;
    draft.status = match (cancelled || finished, started) {
        (true, _) => "closed",
        (false, true) => "in_progress",
        (false, false) => "open",
    }
    .into();
    draft.priority = match row.get("priority").to_lowercase().as_str() {
        "urgent" | "1" => "0",
        "high" | "2" => "1",
        "medium" | "3" | "" => "2",
        "low" | "4" => "3",
        _ => "4",
    }
    .into();
    draft.external_ref = ticket.id.clone();
    draft.assignee = one_line(row.get("assignee"));
    draft.tags = tags(row.list("labels").iter().map(String::as_str));
    draft.description = row.get("description").replace("\r\n", "\n");
    draft.deps = references(row.list("blocked by"));
    draft.parent = references(row.list("parent issue")).into_iter().next().unwrap_or_default();
    if let Some(created) = time(row.get("created")) {
        draft.created = created;
    }
    ticket.links = references(row.list("related to"));
    ticket.cancelled = cancelled && !finished;
    ticket
}
