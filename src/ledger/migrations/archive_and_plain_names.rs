//! Migration to version 2: finished jobs are archived, old notes and runs can be found by their age, and fields have clearer names.

use serde_json::Value;

use super::{Migration, Records, job_groups, rename, reword};

pub const MIGRATION: Migration = Migration {
    // Retention spares a run while something outside the ledger refers to it: salvaged work, or a worktree that was kept.
    sql: "
    ALTER TABLE jobs ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX jobs_live ON jobs (ticket) WHERE archived = 0;
    CREATE INDEX jobs_archived ON jobs (updated_at) WHERE archived = 1;
    ALTER TABLE runs ADD COLUMN spared INTEGER NOT NULL DEFAULT 0;
    UPDATE runs SET spared = 1 WHERE ended_at IS NOT NULL
        AND (json_extract(json, '$.report.salvage') IS NOT NULL OR json_extract(json, '$.report.kept_worktree') IS NOT NULL);
    CREATE INDEX runs_by_age ON runs (ended_at) WHERE ended_at IS NOT NULL AND spared = 0;
    CREATE INDEX notes_by_age ON notes (at);
",
    records: Records { job: Some(migrate_job), effect: Some(migrate_effect), ..Records::UNCHANGED },
};

fn migrate_job(mut job: Value) -> Value {
    rename(&mut job, "unheard", "undelivered");
    rename(&mut job, "fruitless", "no_progress_with");
    rename(&mut job, "tried", "started_with");
    if let Some(author) = job.pointer_mut("/ticket/author") {
        rename(author, "standing", "trust");
        reword(author.get_mut("trust"), "owner", "admin");
        reword(author.get_mut("trust"), "collaborator", "write");
    }
    reword(job.pointer_mut("/stage/wait/for"), "turn", "ready");
    reword(job.pointer_mut("/stage/on/for"), "opening", "publishing");
    job_groups::group(job)
}

fn migrate_effect(mut pending: Value) -> Value {
    if let Some(action) = pending.pointer_mut("/effect/action") {
        rename(action, "unheard", "undelivered");
        job_groups::complete_action(action);
    }
    pending
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_old_name_of_a_job_gets_its_new_one() {
        let words = json!([{"from": "a", "text": "b", "at": 1, "urgent": false}]);
        let old = |wait: &str, on: &str, standing: &str| {
            json!({
                "unheard": words, "fruitless": "f", "tried": null,
                "ticket": {"author": {"name": "a", "standing": standing, "ourselves": false}},
                "stage": {"wait": {"for": wait}, "on": {"for": on, "head": "h"}},
            })
        };
        let new = |wait: &str, on: &str, trust: &str| {
            json!({
                "undelivered": words, "no_progress_with": "f", "started_with": null,
                "ticket": {"author": {"name": "a", "trust": trust, "ourselves": false}},
                "stage": {"wait": {"for": wait}, "on": {"for": on, "head": "h"}},
            })
        };
        assert_eq!(migrate_job(old("turn", "opening", "owner")), new("ready", "publishing", "admin"));
        assert_eq!(migrate_job(old("slot", "gates", "collaborator")), new("slot", "gates", "write"));
        for kept in ["member", "stranger", "bot"] {
            assert_eq!(migrate_job(old("slot", "forge", kept)), new("slot", "forge", kept));
        }
        let once = migrate_job(old("turn", "opening", "owner"));
        assert_eq!(migrate_job(once.clone()), once, "what has the new names keeps them");
    }

    #[test]
    fn what_is_not_there_or_not_as_expected_stays_as_it_is() {
        for odd in [json!(null), json!([1]), json!({"ticket": {"author": null}}), json!({"stage": "x", "ticket": 1})] {
            assert_eq!(migrate_job(odd.clone()), odd);
            assert_eq!(migrate_effect(odd.clone()), odd);
        }
    }

    #[test]
    fn a_start_on_its_way_can_be_read() {
        let old = json!({"effect": {"id": 1, "action": {"do": "start_run", "unheard": ["x"]}}, "attempts": 0});
        let new = migrate_effect(old);
        assert_eq!(new["effect"]["action"]["undelivered"], json!([]), "they are remarks of the job now");
        assert!(new["effect"]["action"]["route"].is_object());
    }
}
