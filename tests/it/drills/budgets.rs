//! Usage limits and budgets, met by live agents and looked at from outside.

use nix::sys::signal::Signal;

use super::{Board, GOOD, MERGE, merges, salvaged, sentence, with_events};

/// Speaks the Agent Client Protocol and loads conversations. Until `$HOME/reset` (milliseconds since the epoch) the model's limit is
/// reached; whoever meets it first makes it eight seconds.
const LIMITED: &str = r#"set -eu
ms() { date +%s%3N; }
heard() { read -r line; }
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(id)" "$1"; }
heard; answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
heard
case "$line" in
  *session/load*) how=$(printf '%s' "$line" | sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p') ;;
  *) how=new ;;
esac
echo "$(ms) start $DIRIGENT_TICKET_KEY $how" >> "$HOME/story"
answer "{\"sessionId\":\"talk-$DIRIGENT_TICKET_KEY\"}"
heard
(set -C; echo $(($(ms) + 8000)) > "$HOME/reset") 2>/dev/null || true
left=$(($(cat "$HOME/reset") - $(ms)))
if [ "$left" -gt 0 ]; then
  echo "unsaved" > "$DIRIGENT_TICKET_KEY.txt"
  printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"usage limit reached, try again in %s ms"}}\n' "$(id)" "$left"
  cat > /dev/null
  exit 0
fi
git add -A
echo work > "$DIRIGENT_TICKET_KEY.txt"; git add -A; git commit -qm work
tk done 'it is done'
echo "$(ms) through $DIRIGENT_TICKET_KEY" >> "$HOME/story"
answer '{"stopReason":"end_turn"}'
cat > /dev/null
"#;

#[test]
fn workers_that_meet_a_limit_rest_until_its_reset_and_go_on_with_the_same_conversations() {
    let board = Board::new(LIMITED, "");
    let front = format!(
        "tracker: {{kind: tk}}\npolling: {{interval_ms: 500}}\nworker: {{runtime: acp}}\nacp: {{command: sh ./agent.sh}}\nagent: {{stop_grace_ms: 1000, max_concurrent_agents: 3, max_retries: 0}}\norchestration: {{phase_store: workpad, comment_min_interval_ms: 0}}\n{MERGE}"
    );
    board.scratch.write("WORKFLOW.md", &format!("---\n{front}---\n"));
    let ids = ["t-1", "t-2", "t-3"];
    for id in ids {
        board.ticket(id, id);
    }
    let runner = board.start();
    board.until("everybody rests", || ids.iter().all(|id| sentence(&board, id).contains("usage limit")));
    let status = board.ok(&["status"]);
    assert!(status.contains("the usage limit of") && status.contains("is reached until"), "{status}");
    assert!(board.ok(&["explain", "t-2"]).contains("is reached"), "{}", board.ok(&["explain", "t-2"]));
    board.until("the ticket says so", || board.ticket_text("t-1").contains("\"quota\""));
    board.until("everybody is done", || ids.iter().all(|id| board.phase(id) == "done"));
    runner.end();
    let home = board.scratch.dir.path();
    let story = std::fs::read_to_string(home.join("story")).unwrap();
    let reset: u64 = std::fs::read_to_string(home.join("reset")).unwrap().trim().parse().unwrap();
    let at = |line: &str| line.split(' ').next().unwrap().parse::<u64>().unwrap();
    let starts: Vec<&str> = story.lines().filter(|line| line.contains(" start ")).collect();
    assert_eq!(starts.len(), 6, "each met it once and came again once:\n{story}");
    assert!(starts[..3].iter().all(|line| line.ends_with(" new")), "{story}");
    for line in &starts[3..] {
        assert!(at(line) >= reset, "started before the reset at {reset}:\n{story}");
        let key = line.split(' ').nth(2).unwrap();
        assert!(line.ends_with(&format!("talk-{key}")), "the same conversation goes on:\n{story}");
    }
    // One goes first; the others follow when it has got through.
    let through = story.lines().find(|line| line.contains(" through ")).unwrap();
    assert!(at(starts[4]) >= at(through), "{story}");
    for id in ids {
        assert_eq!((merges(&board, id), board.status(&[id])["failures"].clone()), (1, 0.into()));
    }
}

#[test]
fn ten_times_the_budget_in_one_turn_is_warned_about_and_then_stopped_at_once() {
    let agent = "echo unsaved > work.txt
echo '{\"type\":\"usage\",\"output\":850}'
until tk show --new | tee -a \"$HOME/told\" | grep -q 'budget is nearly spent'; do sleep 0.1; done
echo '{\"type\":\"usage\",\"output\":9150}'
trap '' TERM
while :; do sleep 3; echo '{\"type\":\"usage\",\"output\":1}'; done
";
    let board = Board::new(agent, MERGE);
    with_events(&board, "", "", &format!("{MERGE}budget: {{max_tokens: 1000}}\n"));
    board.ticket("t-1", "Spends");
    let runner = board.start();
    board.until("it is warned", || {
        std::fs::read_to_string(board.scratch.dir.path().join("told")).is_ok_and(|told| told.contains("nearly spent"))
    });
    board.until("it is stopped", || board.phase("t-1") == "blocked");
    runner.end();
    let job = board.status(&["t-1"]);
    assert_eq!(job["reason"], "budget_exceeded", "{job}");
    assert_eq!((&job["spent"]["output"], &job["attempts"]), (&10_000.into(), &1.into()), "nothing after that: {job}");
    let shown = board.ok(&["status", "t-1"]);
    assert!(shown.contains("tokens 10000 of 1000"), "{shown}");
    assert!(board.ticket_text("t-1").contains("10000 of 1000"), "{}", board.ticket_text("t-1"));
    assert_eq!(salvaged(&board), 1);
    assert!(board.worker_processes().is_empty() && board.worktrees().is_empty());
}

#[test]
fn what_was_spent_right_before_a_kill_nine_is_counted_once() {
    let agent = format!(
        "if [ $DIRIGENT_ATTEMPT = 1 ]; then
echo '{{\"type\":\"usage\",\"output\":700,\"cost_usd\":0.25}}'
while :; do sleep 1; done
fi
{GOOD}"
    );
    let board = Board::new(&agent, MERGE);
    with_events(&board, "", "", &format!("{MERGE}budget: {{max_tokens: 1000, daily: {{max_tokens: 5000}}}}\n"));
    board.ticket("t-1", "Spends and dies");
    let runner = board.start();
    let runs = || {
        let repo = std::fs::read_dir(board.home().join("repos")).into_iter().flatten().flatten().next();
        let folder = repo.map(|repo| repo.path().join("runs"))?;
        std::fs::read_dir(folder).ok()?.flatten().next().map(|run| run.path())
    };
    board.until("it is written down", || {
        runs().and_then(|run| std::fs::read_to_string(run.join("spent.json")).ok()).is_some_and(|s| s.contains("700"))
    });
    runner.signal(Signal::SIGKILL);
    drop(runner);
    let runner = board.start();
    board.until("it is done", || board.phase("t-1") == "done");
    runner.end();
    let job = board.status(&["t-1"]);
    let spent = &job["spent"];
    assert_eq!((&spent["output"], &spent["cost_microusd"]), (&700.into(), &250_000.into()), "{job}");
    assert!(board.ok(&["status"]).contains("today: tokens 700 of 5000"), "{}", board.ok(&["status"]));
}

#[test]
fn a_days_budget_lasts_until_the_local_midnight() {
    let agent = "echo '{\"type\":\"usage\",\"output\":600}'; sleep 600";
    let board = Board::new(agent, MERGE);
    with_events(&board, "", "", &format!("{MERGE}budget: {{daily: {{max_tokens: 500}}}}\n"));
    board.ticket("t-1", "Spends");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() % 86_400;
    let left_in_utc = (86_400 - now) / 3600;
    // A zone whose midnight is between four and five hours away, or between nine and ten where that would be midnight in UTC too.
    let hours = if (3..=5).contains(&left_in_utc) { 9 } else { 4 };
    let local = (86_400 - hours * 3600 - 1800) % 86_400;
    let mut ahead = local as i64 - now as i64;
    ahead += if ahead < -12 * 3600 { 86_400 } else { 0 };
    ahead -= if ahead > 12 * 3600 { 86_400 } else { 0 };
    // In such a zone's name the sign is that of the way back to UTC.
    let sign = if ahead >= 0 { '-' } else { '+' };
    let zone = format!("XYZ{sign}{}:{:02}:{:02}", ahead.abs() / 3600, ahead.abs() / 60 % 60, ahead.abs() % 60);
    let runner = board.start_with(&[("TZ", &zone)]);
    board.until("the day is spent", || sentence(&board, "t-1").contains("today's budget is spent"));
    let next = board.ok(&["status", "t-1", "--field", "next"]);
    assert!(next.contains(&format!("in {hours} h (midnight)")), "{zone}: {next}");
    runner.end();
}
