//! Decides by rule how an agent's question is answered. Questions for a person are parked by the conversation.

use crate::agent::{Answer, Question};
use crate::config::agent::{AgentSettings, AskDefault, OnRequest};

#[derive(Debug, Clone, PartialEq)]
pub enum QuestionVerdict {
    Answer(Answer),
    /// A person has to answer. The text is for the ticket.
    Ask(String),
    /// Nobody can answer, so the run fails. The text is the question.
    Fail(String),
}

/// Decides a question: first by the rules of the workflow (`deny` wins over `allow`), then by `agent.on_request`. Calls of the desk's tools
/// do not come here.
pub fn decide(settings: &AgentSettings, question: &Question) -> QuestionVerdict {
    match question {
        Question::Approval { tool, about } => {
            let named =
                |rules: &[crate::config::agent::RequestRule]| rules.iter().any(|rule| rule.matches(tool, about));
            if named(&settings.deny) {
                let because = "the workflow's `agent.deny` forbids it".to_owned();
                return QuestionVerdict::Answer(Answer::Deny { because });
            }
            if named(&settings.allow) {
                return QuestionVerdict::Answer(Answer::Allow);
            }
            match settings.on_request {
                OnRequest::Auto => QuestionVerdict::Answer(Answer::Allow),
                OnRequest::Ask => QuestionVerdict::Ask(sentence(question)),
                OnRequest::Fail => QuestionVerdict::Fail(sentence(question)),
            }
        }
        Question::Input { .. } => match settings.on_request {
            OnRequest::Ask => QuestionVerdict::Ask(sentence(question)),
            // Consent can be given in advance, an answer to an open question cannot.
            OnRequest::Auto | OnRequest::Fail => QuestionVerdict::Fail(sentence(question)),
        },
        Question::Tool { name, .. } => {
            let output = format!("there is no tool `{name}`");
            QuestionVerdict::Answer(Answer::ToolResult { success: false, output })
        }
    }
}

/// Converts a person's reply into an answer. An approval needs an explicit word of consent; any other text denies.
pub fn reply(question: &Question, text: &str) -> Answer {
    let word = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    match question {
        Question::Approval { .. } if ["approve", "approved", "allow", "yes", "ok"].contains(&word.as_str()) => {
            Answer::Allow
        }
        Question::Approval { .. } => Answer::Deny { because: text.trim().to_owned() },
        Question::Input { .. } | Question::Tool { .. } => Answer::Text(text.trim().to_owned()),
    }
}

/// Returns the answer when nobody has answered in time. `None` for questions that have no default; the run then fails.
pub fn unanswered(settings: &AgentSettings, question: &Question) -> Option<Answer> {
    match (question, settings.ask_default) {
        (Question::Approval { .. }, AskDefault::Approve) => Some(Answer::Allow),
        (Question::Approval { .. }, AskDefault::Deny) => {
            Some(Answer::Deny { because: "nobody answered in time".into() })
        }
        (Question::Input { .. } | Question::Tool { .. }, _) => None,
    }
}

pub fn sentence(question: &Question) -> String {
    match question {
        Question::Approval { tool, about } if about.is_empty() => format!("May it use `{tool}`?"),
        Question::Approval { tool, about } => format!("May it use `{tool}` for `{about}`?"),
        Question::Input { text, choices } if choices.is_empty() => text.clone(),
        Question::Input { text, choices } => format!("{text} ({})", choices.join(" / ")),
        Question::Tool { name, .. } => format!("It calls `{name}`."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::agent::RequestRule;

    fn approval(about: &str) -> Question {
        Question::Approval { tool: "shell".into(), about: about.into() }
    }

    fn settings(on_request: OnRequest) -> AgentSettings {
        let rule = |pattern: &str| RequestRule { tool: "shell".into(), pattern: Some(pattern.into()) };
        AgentSettings {
            on_request,
            allow: vec![rule("git *")],
            deny: vec![rule("* push*")],
            ..AgentSettings::default()
        }
    }

    #[test]
    fn deny_wins_over_allow_and_rules_over_policy() {
        let fail = settings(OnRequest::Fail);
        assert_eq!(decide(&fail, &approval("git status")), QuestionVerdict::Answer(Answer::Allow));
        assert!(matches!(decide(&fail, &approval("git push")), QuestionVerdict::Answer(Answer::Deny { .. })));
        assert!(matches!(decide(&fail, &approval("make")), QuestionVerdict::Fail(text) if text.contains("make")));
        assert_eq!(decide(&settings(OnRequest::Auto), &approval("make")), QuestionVerdict::Answer(Answer::Allow));
        assert!(matches!(decide(&settings(OnRequest::Ask), &approval("make")), QuestionVerdict::Ask(_)));
    }

    #[test]
    fn an_opinion_cannot_be_given_in_advance() {
        let input = Question::Input { text: "Which?".into(), choices: vec!["a".into(), "b".into()] };
        assert_eq!(decide(&settings(OnRequest::Auto), &input), QuestionVerdict::Fail("Which? (a / b)".into()));
        assert_eq!(unanswered(&settings(OnRequest::Ask), &input), None);
    }

    #[test]
    fn a_reply_is_consent_only_when_it_says_so() {
        assert_eq!(reply(&approval("x"), " Approve. "), Answer::Allow);
        assert_eq!(reply(&approval("x"), "deny"), Answer::Deny { because: "deny".into() });
        assert_eq!(reply(&approval("x"), "not yes yet"), Answer::Deny { because: "not yes yet".into() });
    }
}
