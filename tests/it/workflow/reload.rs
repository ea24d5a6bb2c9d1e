//! The watched file.

use std::time::Duration;

use dirigent::workflow::watch::{Reload, Watch};

use super::Desk;

fn next(reloads: &mut tokio::sync::mpsc::UnboundedReceiver<Reload>) -> Reload {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), reloads.recv()).await })
        .expect("a reload within a minute")
        .expect("the watch is alive")
}

#[test]
fn spec_6_a_watched_file_reloads_and_a_bad_edit_keeps_the_last_good_one() {
    let desk = Desk::new();
    let text = |interval: &str| format!("---\ntracker: {{kind: tk}}\npolling: {{interval_ms: {interval}}}\n---\n");
    let loaded = desk.load(&text("1000")).unwrap();
    let (to, mut reloads) = tokio::sync::mpsc::unbounded_channel();
    let watch = Watch::start(&loaded, desk.env.clone(), to).unwrap();

    // An editor that writes a new file and renames it over the old one.
    let fresh = desk.dir().join("fresh.tmp");
    std::fs::write(&fresh, text("2000")).unwrap();
    std::fs::rename(&fresh, &loaded.path).unwrap();
    let Reload::Accepted { loaded: second, needs_restart } = next(&mut reloads) else { panic!("accepted") };
    assert_eq!(second.settings.polling.interval, Duration::from_secs(2));
    assert_ne!(second.hash, loaded.hash);
    assert!(needs_restart.is_empty(), "{needs_restart:?}");

    std::fs::write(&loaded.path, text("never")).unwrap();
    let rejected = loop {
        // A write is not atomic: what was read halfway is rejected as well.
        match next(&mut reloads) {
            Reload::Rejected(error) if error.class() == "invalid_config" && error.to_string().contains("never") => {
                break error;
            }
            Reload::Rejected(_) => {}
            Reload::Accepted { .. } => panic!("a bad edit was accepted"),
        }
    };
    assert!(rejected.to_string().contains("`polling.interval_ms` is \"never\""), "{rejected}");

    let templates = desk.dir().join(".dirigent/templates");
    std::fs::create_dir_all(&templates).unwrap();
    std::fs::write(templates.join("prompt.md"), "OWN {{issue.key}}").unwrap();
    let Reload::Rejected(_) = next(&mut reloads) else { panic!("the file is still bad") };
    std::fs::remove_file(&loaded.path).unwrap();
    let Reload::Rejected(gone) = next(&mut reloads) else { panic!("rejected") };
    assert_eq!(gone.class(), "missing_workflow_file");

    std::fs::write(&fresh, "---\ntracker: {kind: memory}\nserver: {port: 1}\n---\n").unwrap();
    std::fs::rename(&fresh, &loaded.path).unwrap();
    let Reload::Accepted { needs_restart, .. } = next(&mut reloads) else { panic!("accepted") };
    assert_eq!(needs_restart, ["tracker.kind", "tracker.provider.dir", "server.port"]);
    drop(watch);
}

#[test]
fn an_edit_of_a_prompt_that_only_a_route_uses_is_noticed() {
    let desk = Desk::new();
    let templates = desk.dir().join(".dirigent/templates");
    std::fs::create_dir_all(&templates).unwrap();
    std::fs::write(templates.join("careful.md"), "First {{issue.key}}").unwrap();
    let loaded = desk
        .load("---\ntracker: {kind: tk}\nagent: {routing: [{match: {labels: [risky]}, prompt: careful}]}\n---\n")
        .unwrap();
    let (to, mut reloads) = tokio::sync::mpsc::unbounded_channel();
    let _watch = Watch::start(&loaded, desk.env.clone(), to).unwrap();
    std::fs::write(templates.join("careful.md"), "Second {{issue.key}}").unwrap();
    let Reload::Accepted { needs_restart, .. } = next(&mut reloads) else { panic!("accepted") };
    assert!(needs_restart.is_empty(), "{needs_restart:?}");
}
