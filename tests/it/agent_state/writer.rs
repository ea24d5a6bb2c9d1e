//! Cases 1 to 10 and 19 of the contract: the document and its file.

use dirigent::config::observability::ModelTier;
use dirigent::domain::time::Timestamp;
use dirigent::publish::{TeamProgress, TeamState, TeamStateFile, Teammate, TeammateStatus, time_text};

use super::checked;

const NOW: Timestamp = Timestamp(1_770_000_000_000);
const LATER: Timestamp = Timestamp(1_770_000_060_000);

struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> TeamStateFile {
        TeamStateFile::at(self.dir.path().join(".bkit/agent-state.json"))
    }

    fn begun(&self) -> TeamState {
        TeamState::begun("team", "session", NOW)
    }

    /// Through the file and back, held against the schema.
    fn written(&self, state: &TeamState) -> serde_json::Value {
        self.file().write(state, LATER).unwrap();
        checked(&std::fs::read_to_string(self.file().path()).unwrap())
    }
}

fn mate(name: &str) -> Teammate {
    Teammate {
        name: name.into(),
        role: "developer".into(),
        model: ModelTier::Sonnet,
        status: TeammateStatus::Spawning,
        current_task: Some("a task".into()),
        task_id: Some("t-1".into()),
        started_at: time_text(NOW),
        last_activity_at: time_text(NOW),
    }
}

#[test]
fn case_01_a_session_begins_enabled_and_without_teammates() {
    let desk = Desk::new();
    let value = desk.written(&desk.begun());
    assert_eq!((&value["enabled"], &value["version"]), (&true.into(), &"1.0".into()));
    assert_eq!(value["teammates"], serde_json::json!([]));
    assert_eq!((&value["teamName"], &value["sessionId"]), (&"team".into(), &"session".into()));
    assert_eq!((&value["pdcaPhase"], &value["orchestrationPattern"]), (&"plan".into(), &"leader".into()));
    assert_eq!(value["startedAt"], "2026-02-02T02:40:00.000Z");
    assert_eq!(value["lastUpdated"], "2026-02-02T02:41:00.000Z", "of the write");
}

#[test]
fn case_02_a_new_teammate_is_spawning() {
    let desk = Desk::new();
    let mut state = desk.begun();
    state.add(mate("one"));
    let value = desk.written(&state);
    assert_eq!(value["teammates"].as_array().unwrap().len(), 1);
    assert_eq!(value["teammates"][0]["status"], "spawning");
}

#[test]
fn case_03_the_same_name_twice_is_one_teammate_that_keeps_its_start() {
    let mut state = Desk::new().begun();
    state.add(mate("one"));
    state.add(Teammate { started_at: time_text(LATER), role: "tester".into(), ..mate("one") });
    assert_eq!(state.teammates.len(), 1);
    assert_eq!((state.teammates[0].role.as_str(), state.teammates[0].started_at.clone()), ("tester", time_text(NOW)));
}

#[test]
fn case_04_an_eleventh_teammate_waits_while_ten_are_at_work_and_takes_the_place_of_one_that_is_over() {
    let desk = Desk::new();
    let mut state = desk.begun();
    (1..=11).for_each(|number| state.add(mate(&format!("mate-{number}"))));
    assert_eq!(state.teammates.len(), 10);
    assert!(state.teammates.iter().all(|mate| mate.name != "mate-11"));
    desk.written(&state);
    state.set_status("mate-3", TeammateStatus::Completed, None, NOW);
    state.add(mate("mate-11"));
    let names: Vec<&str> = state.teammates.iter().map(|mate| mate.name.as_str()).collect();
    assert_eq!((names.len(), names[2], names[9]), (10, "mate-4", "mate-11"), "in the order of their start");
}

#[test]
fn case_05_one_that_becomes_idle_has_no_task() {
    let mut state = Desk::new().begun();
    state.add(mate("one"));
    state.set_status("one", TeammateStatus::Idle, None, LATER);
    let idle = &state.teammates[0];
    assert_eq!((idle.status, idle.current_task.as_ref(), idle.task_id.as_ref()), (TeammateStatus::Idle, None, None));
    assert_eq!(idle.last_activity_at, time_text(LATER));
    state.set_status("one", TeammateStatus::Working, Some((Some("next".into()), None)), LATER);
    assert_eq!(state.teammates[0].current_task.as_deref(), Some("next"));
    state.set_status("one", TeammateStatus::Failed, None, LATER);
    assert_eq!(state.teammates[0].current_task.as_deref(), Some("next"), "what it failed at is still named");
    state.set_status("nobody", TeammateStatus::Idle, None, LATER);
    assert_eq!(state.teammates.len(), 1);
}

#[test]
fn case_06_progress_is_replaced_as_a_whole() {
    let desk = Desk::new();
    let mut state = desk.begun();
    state.progress =
        TeamProgress { total_tasks: 5, completed_tasks: 1, in_progress_tasks: 2, failed_tasks: 1, pending_tasks: 1 };
    let value = desk.written(&state);
    assert_eq!(
        value["progress"],
        serde_json::json!({"totalTasks": 5, "completedTasks": 1, "inProgressTasks": 2, "failedTasks": 1, "pendingTasks": 1})
    );
}

#[test]
fn case_07_of_fifty_one_messages_the_newest_fifty_stay() {
    let desk = Desk::new();
    let mut state = desk.begun();
    (1..=51).for_each(|number| state.say("", "", &format!("message {number}"), NOW));
    let value = desk.written(&state);
    let messages = value["recentMessages"].as_array().unwrap();
    assert_eq!(messages.len(), 50);
    assert_eq!((&messages[0]["content"], &messages[49]["content"]), (&"message 2".into(), &"message 51".into()));
    assert_eq!((&messages[0]["from"], &messages[0]["to"]), (&"unknown".into(), &"all".into()));
}

#[test]
fn case_08_an_ended_session_is_off_and_empty_and_keeps_what_it_came_to() {
    let desk = Desk::new();
    let mut state = desk.begun();
    state.add(mate("one"));
    state.progress.total_tasks = 3;
    state.say("one", "all", "hello", NOW);
    state.end();
    let value = desk.written(&state);
    assert_eq!((&value["enabled"], &value["teammates"]), (&false.into(), &serde_json::json!([])));
    assert_eq!(value["progress"]["totalTasks"], 3);
    assert_eq!(value["recentMessages"][0]["content"], "hello");
}

#[test]
fn case_09_a_file_that_is_not_there_or_broken_reads_as_nothing() {
    let desk = Desk::new();
    assert_eq!(desk.file().read(), None);
    desk.written(&desk.begun());
    std::fs::write(desk.file().path(), "{\"version\": \"1.0\", ").unwrap();
    assert_eq!(desk.file().read(), None);
}

#[test]
fn case_10_a_write_leaves_no_other_file_and_no_reader_sees_half_of_one() {
    let desk = Desk::new();
    desk.written(&desk.begun());
    let names = |desk: &Desk| -> Vec<String> {
        let folder = std::fs::read_dir(desk.dir.path().join(".bkit")).unwrap();
        folder.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(&desk), ["agent-state.json"]);
    let (file, state) = (desk.file(), desk.begun());
    let writer = std::thread::spawn(move || (0..200).for_each(|_| file.write(&state, NOW).unwrap()));
    while !writer.is_finished() {
        assert!(desk.file().read().is_some(), "half a file was seen");
    }
    writer.join().unwrap();
    assert_eq!(names(&desk), ["agent-state.json"]);
}

#[test]
fn case_19_a_missing_folder_is_made_and_one_that_cannot_be_made_is_an_error_and_nothing_more() {
    let desk = Desk::new();
    assert!(!desk.dir.path().join(".bkit").exists());
    desk.written(&desk.begun());
    std::fs::write(desk.dir.path().join("plain"), "").unwrap();
    assert!(TeamStateFile::at(desk.dir.path().join("plain/agent-state.json")).write(&desk.begun(), NOW).is_err());
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let desk = Desk::new();
    desk.written(&desk.begun());
    let change = |number: usize, file: TeamStateFile| {
        // Whoever does not get its turn says so; it tries again as the next hook would.
        while file
            .change(NOW, |there| {
                let mut state = there?;
                state.say("one", "all", &number.to_string(), NOW);
                Some(state)
            })
            .is_err()
        {}
    };
    std::thread::scope(|scope| {
        (0..20).for_each(|number| {
            let file = desk.file();
            scope.spawn(move || change(number, file));
        });
    });
    assert_eq!(desk.file().read().unwrap().recent_messages.len(), 20);
}
