//! The live table of `run`: its lines, without a terminal; and once in a real one.

use dirigent::domain::job::SwitchSource;
use dirigent::domain::phase::Phase;
use dirigent::domain::snapshot::{Counts, LaneView, Snapshot, SwitchView};
use dirigent::domain::time::Timestamp;
use dirigent::tui::{CompactView, compact};
use ratatui::style::Color;
use ratatui::text::Line;

use super::pictures::{at, job, picture};
use super::tmux::{Tmux, command_line};
use super::{ASKS, settled};
use crate::support::board::{Board, MERGE};

fn view(width: u16, height: u16) -> CompactView<'static> {
    CompactView { width, height, time: at, notice: None, warnings: &[], log: None, keys: true }
}

fn text(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
}

fn crowded() -> Snapshot {
    let mut crowded = picture();
    crowded.jobs.extend((10..60).map(|number| job(&format!("t-{number}"), Phase::Queued, "Wait for a place")));
    crowded.counts =
        Counts { running: 12, queued: 100, retrying: 10, waiting: 12, blocked: 12, done: 1000, ..Counts::default() };
    crowded.rollout = "observe".into();
    crowded
}

fn troubled() -> Snapshot {
    let mut troubled = picture();
    let switch = |source, subject: &str| SwitchView { source, subject: subject.into(), since: Timestamp(60_000) };
    troubled.switches = vec![switch(SwitchSource::PauseAll, "everything"), switch(SwitchSource::TicketLabel, "t-2")];
    troubled.lanes = vec![LaneView {
        lane: "forge".into(),
        last_error: Some("no answer within 30 s\nfrom the server".into()),
        ..LaneView::default()
    }];
    troubled.workflow.warnings = vec!["line 7: `review.agent` names a file that is not there".into()];
    troubled
}

#[test]
fn the_table_at_eighty_columns() {
    insta::assert_snapshot!("live_board", text(&compact(&picture(), &view(80, 20))));
    insta::assert_snapshot!("live_troubles", text(&compact(&troubled(), &view(80, 20))));
    insta::assert_snapshot!("live_wide", text(&compact(&picture(), &view(120, 20))));
}

#[test]
fn what_has_no_room_is_counted_and_no_line_is_too_long() {
    let lines = compact(&crowded(), &view(80, 12));
    let shown = text(&lines);
    assert!(shown.contains("+47 more: dirigent status"), "{shown}");
    assert_eq!(lines.len(), 12, "{shown}");
    let counts = "mode observe · 12 running · 110 queued · 12 waiting · 12 blocked · 1000 done\n";
    assert!(shown.starts_with(counts), "{shown}");
    for (width, height) in [(80, 24), (44, 10), (20, 6), (5, 3), (1, 1), (200, 2)] {
        for board in [crowded(), troubled(), Snapshot::default()] {
            let lines = compact(&board, &view(width, height));
            assert!(lines.len() <= usize::from(height), "{width}x{height}: {}", text(&lines));
            assert!(lines.iter().all(|line| line.width() <= usize::from(width)), "{width}x{height}: {}", text(&lines));
        }
    }
}

#[test]
fn who_waits_stands_first_and_colour_has_a_meaning() {
    let lines = compact(&picture(), &view(80, 20));
    let colour_of = |words: &str| {
        let spans = lines.iter().flat_map(|line| line.spans.iter());
        spans.filter(|span| span.content.trim() == words).find_map(|span| span.style.fg)
    };
    assert_eq!(colour_of("blocked"), Some(Color::Yellow));
    assert_eq!(colour_of("implementing"), Some(Color::Blue));
    assert_eq!(colour_of("done"), Some(Color::Green));
    let shown = text(&lines);
    assert!(shown.find("t-3").unwrap() < shown.find("t-2").unwrap(), "{shown}");
    assert!(shown.contains("mixing the paint"), "the agent's last words: {shown}");
}

#[test]
fn the_log_takes_the_place_of_the_tickets() {
    let log: Vec<String> = (1..=40).map(|number| format!("line {number}")).collect();
    let shown = text(&compact(&picture(), &CompactView { log: Some(&log), ..view(80, 10) }));
    assert!(shown.contains("line 40") && !shown.contains("line 1\n") && !shown.contains("t-3"), "{shown}");
    assert!(shown.contains("l tickets"), "{shown}");
    let quiet = text(&compact(&picture(), &CompactView { keys: false, ..view(80, 10) }));
    assert!(!quiet.contains("q end"), "nobody can press any: {quiet}");
}

/// A recording of the live table at eighty columns, its keys, and a terminal that is as it was before.
#[test]
fn in_a_real_terminal_keys_pause_show_the_log_and_end_it() {
    if !Tmux::is_there() {
        return;
    }
    let agent = format!(
        "if [ \"$DIRIGENT_TICKET_KEY\" = t-2 ]; then {ASKS} exit 0; fi\ntk comment 'I am at it'\nwhile :; do sleep 1; done\n"
    );
    let board = Board::new(&agent, MERGE);
    board.ticket("t-1", "Paint the door");
    board.ticket("t-2", "Paint the wall");
    let run = command_line(&board, &["run"]);
    let tmux = Tmux::running(
        &board,
        "live",
        &format!("{run}; stty -a | tr ' ;' '\\n\\n' | grep -x -e '-*echo' -e '-*icanon'; sleep 60"),
    );
    tmux.sees("implementing");
    tmux.sees("which colour?");
    tmux.sees("I am at it");
    insta::assert_snapshot!("live_recording", settled(&tmux.screen()));
    tmux.press("l");
    tmux.sees("t-1  queued → implementing");
    tmux.press("l");
    tmux.press("p");
    board.until("it is paused", || board.status(&[])["switches"].to_string().contains("pause_all"));
    tmux.sees("STOPPED: dirigent pause");
    tmux.press("p");
    board.until("it goes on", || board.status(&[])["switches"] == serde_json::json!([]));
    tmux.press("q");
    tmux.sees("no runner up");
    board.until("the terminal is given back", || {
        let screen = tmux.screen();
        screen.lines().any(|line| line == "echo") && screen.lines().any(|line| line == "icanon")
    });
    assert!(board.worker_processes().is_empty());
}
