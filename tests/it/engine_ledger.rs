//! What the ledger holds after each step is what the engine would go on with.

use dirigent::engine::state::State;
use dirigent::ledger::{Ledger, LedgerReader, SqliteLedger};
use proptest::prelude::*;

use crate::engine::machine::Machine;
use crate::engine::random::{apply, choices, started};

/// The machine, with a real ledger beside its own memory of what was kept.
fn records(state: &State) -> (String, String, String) {
    let json = |value: serde_json::Value| value.to_string();
    (
        json(serde_json::to_value(state.jobs.values().collect::<Vec<_>>()).unwrap()),
        json(serde_json::to_value(state.runs.values().collect::<Vec<_>>()).unwrap()),
        json(serde_json::to_value(state.outbox.values().collect::<Vec<_>>()).unwrap()),
    )
}

fn commit_everything_that_differs(ledger: &mut SqliteLedger, before: &State, machine: &Machine) {
    let mut changes = dirigent::engine::state::Changes { meta: true, ..Default::default() };
    let after = &machine.kept;
    changes
        .jobs
        .extend(after.jobs.iter().filter(|(id, job)| before.jobs.get(id) != Some(job)).map(|(id, _)| id.clone()));
    changes
        .runs
        .extend(after.runs.iter().filter(|(id, run)| before.runs.get(id) != Some(run)).map(|(id, _)| id.clone()));
    changes.runs.extend(before.runs.keys().filter(|id| !after.runs.contains(id)).cloned());
    changes.outbox.extend(after.outbox.iter().filter(|(id, e)| before.outbox.get(id) != Some(e)).map(|(id, _)| *id));
    changes.outbox.extend(before.outbox.keys().filter(|id| after.outbox.get(id).is_none()).copied());
    ledger.commit(after, &changes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_state_restored_from_the_ledger_equals_the_one_that_was_left((start, order) in choices(25)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let mut machine = started(start);
        let mut ledger = SqliteLedger::open(&path).unwrap();
        commit_everything_that_differs(&mut ledger, &State::default(), &machine);
        for choice in order {
            let before = machine.kept.clone();
            apply(&mut machine, choice);
            commit_everything_that_differs(&mut ledger, &before, &machine);
        }
        drop(ledger);
        let restored = SqliteLedger::open(&path).unwrap().load().unwrap();
        prop_assert_eq!(records(&restored), records(&machine.kept));
        prop_assert_eq!(&restored.meta, &machine.kept.meta);
        prop_assert!(!restored.recovered, "nothing is decided before the past is settled");
    }
}
