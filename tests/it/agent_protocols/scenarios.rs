//! The conversations that every client has to hold, and what must come of them: live and replayed alike.

use dirigent::agent::{AgentEvent, Answer, TurnEnd};
use dirigent::domain::failure::TurnError;
use dirigent::domain::usage::Usage;

use super::clients::Client::{self, Claude, Codex, Opencode, Pi};

#[derive(Debug, Clone, Copy)]
pub enum Until {
    Ready,
    TurnStarted,
    ToolStarted,
    Asked,
    TurnEnded,
    ResumeFailed,
    Error,
}

#[derive(Debug, Clone)]
pub enum Step {
    /// A new process; the conversation of the process before, if there was one, is resumed.
    Open,
    /// A new process that is to resume a conversation that never was.
    OpenLost,
    Prompt(&'static str),
    Steer(&'static str),
    Interrupt,
    Until(Until),
    Answer(Answer),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The worktree has a commit of the agent's.
    Committed,
    /// No process of the worktree is left that was started by the agent's shell.
    NoChildLeft,
    /// The model was told the steering text.
    ModelSawSteering,
    /// The model was told the steering text, or we were told that it was not.
    SteeringNotLost,
    /// A denied command left nothing behind.
    NothingWritten,
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub client: Client,
    pub name: &'static str,
    pub setup: Setup,
    pub steps: Vec<Step>,
    pub ends: Vec<&'static str>,
    pub saw: Vec<&'static str>,
    /// Fresh, cached, output, reasoning: the sum of all reports.
    pub usage: Option<(u64, u64, u64, u64)>,
    pub facts: Vec<Fact>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    pub asks: bool,
    /// A tool of ours is offered to the first process; a resumed thread still knows it.
    pub tool: bool,
    pub model: Option<&'static str>,
}

pub const STEERING: &str = "Mind the second reader.";
const COMMIT: &str = "Do it.";
const SLOW: &str = "MODEL:shell for i in 1 2 3 4 5 6; do sleep 0.5; echo $i; done\nMODEL:text Slowly done.";
const ENDLESS: &str = "MODEL:shell for i in 1 2 3; do sleep 600; echo $i; done\nMODEL:text Never said.";
const WRITES: &str = "MODEL:shell touch written.txt\nMODEL:text Tried it.";

fn turn(prompt: &'static str) -> Vec<Step> {
    vec![Step::Prompt(prompt), Step::Until(Until::TurnEnded)]
}

fn opened() -> Vec<Step> {
    vec![Step::Open, Step::Until(Until::Ready)]
}

fn scenario(client: Client, name: &'static str, steps: Vec<Vec<Step>>) -> Scenario {
    Scenario {
        client,
        name,
        setup: Setup::default(),
        steps: steps.concat(),
        ends: vec!["completed"],
        saw: Vec::new(),
        usage: None,
        facts: Vec::new(),
    }
}

/// What the scripted model charges for one or two requests, in this client's reading of it.
fn priced(client: Client, requests: &[(u64, u64)]) -> Option<(u64, u64, u64, u64)> {
    let mut sum = (0, 0, 0, 0);
    for (input, output) in requests {
        // Anthropic names cached input beside the rest, OpenAI inside it.
        sum.0 += if client == Claude { *input } else { input - 400 };
        sum.1 += 400;
        sum.2 += output;
        sum.3 += if client == Codex { 5 } else { 0 };
    }
    Some(sum)
}

pub fn all() -> Vec<Scenario> {
    let mut list = Vec::new();
    for client in [Codex, Claude, Pi, Opencode] {
        list.extend(common(client));
    }
    for client in [Codex, Claude, Pi] {
        let steered = vec![
            Step::Prompt(SLOW),
            Step::Until(Until::ToolStarted),
            Step::Steer(STEERING),
            Step::Until(Until::TurnEnded),
        ];
        list.push(Scenario {
            facts: vec![Fact::ModelSawSteering],
            ..scenario(client, "steered", vec![opened(), steered])
        });
    }
    for client in [Codex, Claude, Pi] {
        let both = vec![
            Step::Prompt(ENDLESS),
            Step::Until(Until::ToolStarted),
            Step::Steer(STEERING),
            Step::Interrupt,
            Step::Until(Until::TurnEnded),
        ];
        list.push(Scenario {
            ends: vec!["interrupted", "completed"],
            facts: [ended_by_the_client(client), vec![Fact::SteeringNotLost]].concat(),
            ..scenario(client, "steered_and_interrupted", vec![opened(), both, turn("MODEL:text Back.")])
        });
    }
    for client in [Codex, Claude, Pi, Opencode] {
        let stalled = vec![
            Step::Prompt("MODEL:hang 300"),
            Step::Until(Until::TurnStarted),
            Step::Interrupt,
            Step::Until(Until::TurnEnded),
        ];
        let ends = vec!["interrupted", "completed"];
        list.push(Scenario { ends, ..scenario(client, "stalled", vec![opened(), stalled, turn("MODEL:text Back.")]) });
    }
    for (client, ask) in [
        (
            Codex,
            r#"MODEL:call request_user_input {"questions":[{"id":"color","header":"Color","question":"Which color?","options":[{"label":"Blue","description":"b"},{"label":"Red","description":"r"}]}]}"#,
        ),
        (
            Claude,
            r#"MODEL:call AskUserQuestion {"questions":[{"question":"Which color?","header":"Color","options":[{"label":"Blue","description":"b"},{"label":"Red","description":"r"}],"multiSelect":false}]}"#,
        ),
    ] {
        let asked = vec![
            Step::Prompt(ask),
            Step::Until(Until::Asked),
            Step::Answer(Answer::Text("Red".into())),
            Step::Until(Until::TurnEnded),
        ];
        list.push(Scenario {
            saw: vec!["input(Which color?|Blue,Red)"],
            ..scenario(client, "question", vec![opened(), asked])
        });
    }
    list.extend(codex_tools());
    list
}

/// Codex kills its sandbox from above: now and then the command below lives on without a parent. Ending that is the runner's work and
/// shown with the whole worker, in `end_to_end`.
fn ended_by_the_client(client: Client) -> Vec<Fact> {
    if client == Codex { Vec::new() } else { vec![Fact::NoChildLeft] }
}

fn common(client: Client) -> Vec<Scenario> {
    let allowed = vec![
        Step::Prompt(COMMIT),
        Step::Until(Until::Asked),
        Step::Answer(Answer::Allow),
        Step::Until(Until::TurnEnded),
    ];
    let denied = vec![
        Step::Prompt(WRITES),
        Step::Until(Until::Asked),
        Step::Answer(Answer::Deny { because: "not here".into() }),
        Step::Until(Until::TurnEnded),
    ];
    let asking = Setup { asks: true, ..Setup::default() };
    let two_requests = priced(client, &[(1000, 20), (1100, 21)]);
    let interrupted =
        vec![Step::Prompt(ENDLESS), Step::Until(Until::ToolStarted), Step::Interrupt, Step::Until(Until::TurnEnded)];
    let failing =
        |name, prompt, end| Scenario { ends: vec![end], ..scenario(client, name, vec![opened(), turn(prompt)]) };
    let mut list = vec![
        Scenario {
            ends: vec!["completed", "completed"],
            saw: vec![
                "ready",
                "turn",
                "tool",
                "tool ok",
                "message(Committed hello.txt.)",
                "ended",
                "turn",
                "message(Second.)",
            ],
            // opencode names the last request of a prompt only.
            usage: if client == Opencode {
                priced(client, &[(1100, 21), (1000, 20)])
            } else {
                priced(client, &[(1000, 20), (1100, 21), (1000, 20)])
            },
            facts: vec![Fact::Committed],
            ..scenario(client, "two_turns", vec![opened(), turn(COMMIT), turn("MODEL:text Second.")])
        },
        Scenario {
            ends: vec!["completed", "completed"],
            usage: priced(client, &[(1000, 20), (1000, 20)]),
            ..scenario(
                client,
                "resumed",
                vec![opened(), turn("MODEL:text First."), opened(), turn("MODEL:text Again.")],
            )
        },
        Scenario {
            ends: vec!["interrupted", "completed"],
            saw: vec!["tool", "ended"],
            facts: ended_by_the_client(client),
            ..scenario(client, "interrupted", vec![opened(), interrupted, turn("MODEL:text Back.")])
        },
        Scenario {
            setup: asking,
            saw: vec!["approval", "tool ok"],
            usage: if client == Opencode { priced(client, &[(1100, 21)]) } else { two_requests },
            facts: vec![Fact::Committed],
            ..scenario(client, "allowed", vec![opened(), allowed])
        },
        Scenario {
            setup: asking,
            saw: vec!["approval", "tool failed"],
            facts: vec![Fact::NothingWritten],
            ..scenario(client, "denied", vec![opened(), denied])
        },
        failing("rate_limited", "MODEL:http 429 retry-after=1", "failed RateLimit"),
        failing("unauthorized", "MODEL:http 401", "failed Auth"),
        failing("server_error", "MODEL:http 500", "failed Other"),
    ];
    let lost = if client == Claude {
        vec![Step::OpenLost, Step::Prompt("MODEL:text Hello."), Step::Until(Until::ResumeFailed)]
    } else {
        vec![Step::OpenLost, Step::Until(Until::Ready)]
    };
    let ends = if client == Claude { vec!["failed Other"] } else { Vec::new() };
    list.push(Scenario { ends, saw: vec!["resume failed"], ..scenario(client, "resume_lost", vec![lost]) });
    if client == Opencode {
        let setup = Setup { model: Some("mock/nope"), ..Setup::default() };
        let steps = vec![Step::Open, Step::Until(Until::Error)];
        list.push(Scenario {
            setup,
            ends: Vec::new(),
            saw: vec!["error Model"],
            ..scenario(client, "unknown_model", vec![steps])
        });
    } else {
        list.push(failing("unknown_model", "MODEL:http 404", "failed Model"));
    }
    list
}

fn codex_tools() -> Vec<Scenario> {
    const CALL: &str = "MODEL:call ticket_comment {\"text\":\"hello\"}\nMODEL:text Said it.";
    let answered = vec![
        Step::Prompt(CALL),
        Step::Until(Until::Asked),
        Step::Answer(Answer::ToolResult { success: true, output: "noted".into() }),
        Step::Until(Until::TurnEnded),
    ];
    let setup = Setup { tool: true, ..Setup::default() };
    vec![
        Scenario {
            setup,
            saw: vec!["tool call(ticket_comment)", "tool ok"],
            ..scenario(Codex, "own_tool", vec![opened(), answered])
        },
        Scenario {
            setup,
            ends: vec!["completed", "completed"],
            saw: vec!["unsupported(ticket_comment)", "tool failed"],
            ..scenario(Codex, "unsupported_tool", vec![opened(), turn("MODEL:text First."), opened(), turn(CALL)])
        },
    ]
}

/// One word per event, so that an expectation reads like the conversation.
pub fn word(event: &AgentEvent) -> String {
    use dirigent::agent::Question;
    match event {
        AgentEvent::Ready => "ready".into(),
        AgentEvent::SessionStarted { .. } => "session".into(),
        AgentEvent::ResumeFailed { .. } => "resume failed".into(),
        AgentEvent::TurnStarted => "turn".into(),
        AgentEvent::TurnEnded(_) => "ended".into(),
        AgentEvent::Message { text } => format!("message({text})"),
        AgentEvent::ToolStarted { .. } => "tool".into(),
        AgentEvent::ToolFinished { ok: true, .. } => "tool ok".into(),
        AgentEvent::ToolFinished { ok: false, .. } => "tool failed".into(),
        AgentEvent::Model { .. } => "model".into(),
        AgentEvent::Usage(_) => "usage".into(),
        AgentEvent::RateLimited { .. } => "limits".into(),
        AgentEvent::Asked { question: Question::Approval { .. }, .. } => "approval".into(),
        AgentEvent::Asked { question: Question::Input { text, choices }, .. } => {
            format!("input({text}|{})", choices.join(","))
        }
        AgentEvent::Asked { question: Question::Tool { name, .. }, .. } => format!("tool call({name})"),
        AgentEvent::Error { class, .. } => format!("error {class:?}"),
        AgentEvent::UnsupportedTool { name } => format!("unsupported({name})"),
        AgentEvent::SteerFailed { .. } => "steer failed".into(),
        AgentEvent::Alive => "alive".into(),
        AgentEvent::Malformed { .. } => "malformed".into(),
    }
}

pub fn ends(events: &[AgentEvent]) -> Vec<String> {
    let word = |end: &TurnEnd| match end {
        TurnEnd::Completed => "completed".to_owned(),
        TurnEnd::Interrupted => "interrupted".to_owned(),
        TurnEnd::Failed { class, .. } => format!("failed {class:?}"),
    };
    events
        .iter()
        .filter_map(|event| if let AgentEvent::TurnEnded(end) = event { Some(word(end)) } else { None })
        .collect()
}

pub fn spent(events: &[AgentEvent]) -> Usage {
    let mut sum = Usage::default();
    for event in events {
        if let AgentEvent::Usage(usage) = event {
            sum += *usage;
        }
    }
    sum
}

/// What every run of a scenario must show, whoever plays the agent.
pub fn check(scenario: &Scenario, events: &[AgentEvent]) {
    let label = format!("{:?}/{}", scenario.client, scenario.name);
    let words: Vec<String> = events.iter().map(word).filter(|word| word != "alive").collect();
    assert_eq!(ends(events), scenario.ends, "{label}: {words:?}\n{events:?}");
    let mut rest = words.iter();
    for wanted in &scenario.saw {
        assert!(rest.any(|word| word == wanted), "{label}: no `{wanted}` (in this order) in {words:?}");
    }
    if let Some(wanted) = scenario.usage {
        let sum = spent(events);
        assert_eq!((sum.fresh_input, sum.cached_input, sum.output, sum.reasoning), wanted, "{label}");
    }
    if scenario.name == "rate_limited" {
        let classes: Vec<TurnError> = events
            .iter()
            .filter_map(
                |event| if let AgentEvent::Error { class, retryable: true, .. } = event { Some(*class) } else { None },
            )
            .collect();
        assert!(scenario.client == Opencode || classes.contains(&TurnError::RateLimit), "{label}: {words:?}");
    }
}
