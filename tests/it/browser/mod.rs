//! The dashboard in a real browser, in front of a real runner. Where there is no browser each test says so and passes.

mod driver;
mod seeing;
mod working;

use super::http::client::ServedBoard;
use driver::{Browser, DESK, Look, missing};

/// Paints what it is told to, asks where it is not told, and goes on for ever where the title says so. What `tk` answers it is kept
/// to itself: whatever an agent prints are its last words, so they would be those.
const PAINTER: &str = r#"title=$(tk show | sed -n 's/^# [^:]*: //p' | head -n 1)
tk comment "mixing the paint" > /dev/null
case "$title" in
  *slowly*) while :; do sleep 1; done ;;
  *colour*)
    if ! { tk show; cat "$DIRIGENT_PROMPT_FILE"; } | grep -q '^Blue'; then tk blocked "Which colour?"; exit 0; fi ;;
esac
echo "<b>blue</b>" > "door-$DIRIGENT_TICKET_KEY.txt"
git add -A
git commit -q -m "Paint the door"
tk done "painted it blue"
"#;

/// Merges what a person approves.
const APPROVED: &str = "rollout: {mode: merge}\npr: {forge: local}\nmerge: {mode: auto, no_checks: pass}\n";

fn page(served: &ServedBoard, path: &str) -> String {
    format!("http://{}{path}", served.address)
}

/// Whether there is nothing to do here; says why.
fn skipped() -> bool {
    match missing() {
        Some(why) => {
            println!("skipped: {why}");
            true
        }
        None => false,
    }
}
