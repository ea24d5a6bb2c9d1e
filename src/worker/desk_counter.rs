//! Carries out the verbs by which a worker talks to its runner, whichever way they come: the socket, a tool of its protocol, or MCP. All of
//! them concern the run's one ticket.
//!
//! What the worker says becomes activity or a declared result; only the verb for the tracker's own API writes to the tracker, through the
//! runner. Everything that a worker can pile up is bounded: messages by number and size, reads of the ticket by time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::desk::{DeskOrder, WorkBranch};
use super::desk_protocol::{AnswerKind, DESK_VERSION, DeskRequest, DeskResponse, DeskVerb};
use super::ticket_text;
use super::{ApiOutcome, WorkerEvent};
use crate::agent::session::now;
use crate::config::tracker::AgentTool;
use crate::domain::evidence::{Evidence, EvidenceKind};
use crate::domain::ids::{CommentId, CommitId};
use crate::domain::job::HumanMessage;
use crate::domain::remark::RemarkKey;
use crate::domain::run::{Activity, Declared};
use crate::domain::ticket::{NewTicket, Ticket, normalise_labels};

/// How many bytes of each text are kept in evidence.
const EVIDENCE_LIMIT: usize = 8 << 10;
/// The longest text of any other kind, in bytes.
const TEXT_LIMIT: usize = 64 << 10;
/// The number of comments, evidence, answers, plans and follow-ups of one run together.
const MESSAGES: usize = 1000;
/// The size of all their texts together, in bytes.
const MESSAGE_BYTES: usize = 8 << 20;
const TRACKER_LIMIT: Duration = Duration::from_secs(10);
/// How many reads of the ticket may follow one another without a pause.
const LOOKS: u32 = 30;
/// After that many reads, one more is allowed per this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The limit for one request to the tracker's own API.
const API_LIMIT: Duration = Duration::from_secs(90);
/// How many bytes of its response are kept.
const API_ANSWER_LIMIT: usize = 100 << 10;

pub struct Counter {
    token: String,
    order: DeskOrder,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    declared: Option<Declared>,
    evidence: Vec<Evidence>,
    seen: BTreeSet<CommentId>,
    /// Messages of people to the run that the worker has not fetched yet.
    words: Vec<HumanMessage>,
    /// The remarks that have reached the agent, by handle.
    remarks: BTreeMap<String, DeliveredRemark>,
    messages: usize,
    bytes: usize,
    /// How many follow-ups the worker asked for.
    follow_ups: usize,
    looks: Looks,
    /// Requests to the tracker's own API, limited like reads of the ticket.
    requests: Looks,
    /// The ticket as it was last read.
    ticket: Option<Ticket>,
}

struct DeliveredRemark {
    key: RemarkKey,
    head: HeadThen,
}

/// The head of the branch when a remark reached the agent.
#[derive(Clone, PartialEq)]
enum HeadThen {
    /// The head is being looked up.
    NotYetKnown,
    Known(Option<CommitId>),
}

impl HeadThen {
    /// Whether `head` differs from the head at that time.
    fn is_since(&self, head: &CommitId) -> bool {
        matches!(self, Self::Known(then) if then.as_ref() != Some(head))
    }
}

/// Limits how often the tracker is asked.
#[derive(Default)]
struct Looks {
    made: u32,
    since: Option<Instant>,
}

impl Looks {
    fn may_look(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let earned = u32::try_from((now - since).as_millis() / LOOK_EVERY.as_millis()).unwrap_or(u32::MAX);
        if earned > 0 {
            self.made = self.made.saturating_sub(earned);
            self.since = Some(now);
        }
        let may = self.made < LOOKS;
        self.made += u32::from(may);
        may
    }
}

impl Counter {
    pub fn new(token: String, order: DeskOrder) -> Self {
        let seen = order.ticket.known_comments().iter().map(|comment| comment.id.clone()).collect();
        Self { token, order, book: Mutex::new(Book { seen, ..Book::default() }) }
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn declared(&self) -> Option<Declared> {
        self.book().declared.clone()
    }

    pub fn evidence(&self) -> Vec<Evidence> {
        self.book().evidence.clone()
    }

    pub fn hear(&self, word: HumanMessage) {
        self.book().words.push(word);
    }

    /// Records that remarks have reached the agent, and the branch's head at this time: only a later commit can answer them with `fixed`.
    /// A remark that reaches it again in the same version keeps the head of the first time.
    pub fn delivered(self: &Arc<Self>, remarks: &[RemarkKey]) {
        let mut book = self.book();
        let mut any_new = false;
        for key in remarks {
            if book.remarks.get(&key.handle()).is_none_or(|before| before.key != *key) {
                book.remarks.insert(key.handle(), DeliveredRemark { key: key.clone(), head: HeadThen::NotYetKnown });
                any_new = true;
            }
        }
        drop(book);
        if !any_new {
            return;
        }
        let counter = Arc::clone(self);
        tokio::spawn(async move {
            let head = counter.head().await;
            for remark in counter.book().remarks.values_mut().filter(|remark| remark.head == HeadThen::NotYetKnown) {
                remark.head = HeadThen::Known(head.clone());
            }
        });
    }

    /// Forgets that remarks have reached the agent, because they did not.
    pub fn not_delivered(&self, remarks: &[RemarkKey]) {
        self.book().remarks.retain(|_, delivered| !remarks.contains(&delivered.key));
    }

    async fn head(&self) -> Option<CommitId> {
        let WorkBranch { workspaces, name } = self.order.branch.as_ref()?;
        workspaces.branch_head(name).await.ok().flatten()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn answer(self: &Arc<Self>, line: &[u8]) -> DeskResponse {
        let head: Head = match serde_json::from_slice(line) {
            Ok(head) => head,
            Err(error) => return DeskResponse::refused("bad_request", format!("not a request: {error}")),
        };
        if !same(head.token.as_bytes(), self.token.as_bytes()) {
            return DeskResponse::refused("bad_token", "this token is not the run's own");
        }
        if head.v != DESK_VERSION {
            let message = format!("this desk speaks version {DESK_VERSION}, not {}", head.v);
            return DeskResponse::refused("version", message);
        }
        match serde_json::from_slice::<DeskRequest>(line) {
            Ok(request) => self.serve(request.verb).await,
            Err(error) => DeskResponse::refused("bad_request", format!("not a request: {error}")),
        }
    }

    pub async fn serve(self: &Arc<Self>, verb: DeskVerb) -> DeskResponse {
        let ticket = &self.order.ticket;
        if let Some(named) = verb.ticket()
            && named != ticket.id.as_str()
            && named != ticket.key.as_str()
        {
            let message = format!("this run may only touch its own ticket, {}", ticket.key);
            return DeskResponse::refused("other_ticket", message);
        }
        let reads = matches!(
            verb,
            DeskVerb::Show { .. } | DeskVerb::Api { .. } | DeskVerb::Done { .. } | DeskVerb::Failed { .. }
        );
        if self.order.reads_only && !reads {
            let message = "this run only reviews: what you found belongs into your last message, in the form that your task names";
            return DeskResponse::refused("not_allowed", message);
        }
        if let Err(refusal) = self.admit(&verb) {
            return refusal;
        }
        match verb {
            DeskVerb::Show { new, .. } => self.show(new).await,
            DeskVerb::Comment { text, .. } => self.comment(text),
            DeskVerb::Evidence { evidence, .. } => self.prove(evidence),
            DeskVerb::Answer { remark, answer, text, .. } => self.answer_remark(&remark, answer, text.trim()).await,
            DeskVerb::Done { summary, .. } => {
                self.book().declared = Some(Declared::Done { summary });
                DeskResponse::done(format!("{} is declared done; end your turn now", ticket.key))
            }
            DeskVerb::Failed { why, .. } => self.give_up(&why),
            DeskVerb::Blocked { reason, .. } => self.block(&reason),
            DeskVerb::Plan { text, .. } if text.trim().is_empty() => {
                DeskResponse::refused("bad_request", "the plan is empty")
            }
            DeskVerb::Plan { text, .. } => {
                self.tell(Activity::Planned { text });
                DeskResponse::done("the plan is noted")
            }
            DeskVerb::Api { request, tool } => self.ask_service(&request, tool.as_deref()).await,
            DeskVerb::Create { title, description, labels, priority } => self.create(NewTicket {
                title: title.trim().to_owned(),
                description,
                labels: normalise_labels(labels),
                priority,
                parent: Some(ticket.id.clone()),
                blocked_by: Vec::new(),
            }),
        }
    }

    /// Refuses texts that are too long, and messages beyond the limits of the run. The number of declarations is not limited, because each
    /// replaces the one before.
    fn admit(&self, verb: &DeskVerb) -> Result<(), DeskResponse> {
        let refuse = |message: String| Err(DeskResponse::refused("over", message));
        // Evidence is truncated; every other text is taken in full or refused.
        let is_evidence = matches!(verb, DeskVerb::Evidence { .. });
        let size = if is_evidence { verb.size().min(2 * EVIDENCE_LIMIT) } else { verb.size() };
        if size > TEXT_LIMIT {
            let advice = "put it into a file in $DIRIGENT_ARTIFACTS and say where";
            return refuse(format!("that is {} KB, and {} are the most; {advice}", size >> 10, TEXT_LIMIT >> 10));
        }
        if verb.is_declaration() || matches!(verb, DeskVerb::Show { .. }) {
            return Ok(());
        }
        let mut book = self.book();
        if book.messages >= MESSAGES {
            return refuse(format!("this run has said {MESSAGES} things already"));
        }
        if book.bytes + size > MESSAGE_BYTES {
            return refuse(format!("this run has said {} MB already", MESSAGE_BYTES >> 20));
        }
        book.messages += 1;
        book.bytes += size;
        Ok(())
    }

    async fn answer_remark(&self, remark: &str, answer: AnswerKind, text: &str) -> DeskResponse {
        if text.is_empty() {
            return DeskResponse::refused("bad_request", "say in a sentence what you did, or why not");
        }
        let Some((key, before)) = self.delivered_remark(remark) else {
            let known: Vec<String> = self.book().remarks.keys().cloned().collect();
            let known = if known.is_empty() { "none was".to_owned() } else { format!("{} were", known.join(", ")) };
            let message = format!("no remark `{remark}` was delivered to this run; {known}");
            return DeskResponse::refused("no_such_remark", message);
        };
        if answer == AnswerKind::Fixed
            && let Some(branch) = &self.order.branch
        {
            let head = self.head().await;
            match head {
                Some(head) if before.is_since(&head) => self.tell(Activity::Committed { head }),
                _ => {
                    let message = format!(
                        "`fixed` counts only with a commit on `{}` made after {remark} reached you: commit first, or \
                         answer `explained` or `declined`",
                        branch.name
                    );
                    return DeskResponse::refused("no_commit", message);
                }
            }
        }
        self.tell(Activity::AnsweredRemark { remark: key, answer: answer.with(text.to_owned()) });
        DeskResponse::done(format!("{remark} is answered: {}", answer.name()))
    }

    /// Finds a delivered remark by its handle, or by the id that the tracker or the forge gave it.
    fn delivered_remark(&self, name: &str) -> Option<(RemarkKey, HeadThen)> {
        let book = self.book();
        let found =
            book.remarks.get(name).or_else(|| book.remarks.values().find(|remark| remark.key.id.as_str() == name))?;
        Some((found.key.clone(), found.head.clone()))
    }

    fn give_up(&self, why: &str) -> DeskResponse {
        let why = why.trim().to_owned();
        if why.is_empty() {
            return DeskResponse::refused("bad_request", "say why it failed");
        }
        self.book().declared = Some(Declared::Failed { why });
        DeskResponse::done(format!("the work on {} is declared failed; end your turn now", self.order.ticket.key))
    }

    fn comment(&self, text: String) -> DeskResponse {
        let text = text.trim();
        if text.is_empty() {
            return DeskResponse::refused("bad_request", "the comment is empty");
        }
        if let Some(reason) = text.strip_prefix("BLOCKED:") {
            return self.block(reason);
        }
        self.tell(Activity::Commented { text: text.to_owned() });
        DeskResponse::done("the comment is noted")
    }

    fn block(&self, reason: &str) -> DeskResponse {
        let reason = reason.trim().to_owned();
        if reason.is_empty() {
            return DeskResponse::refused("bad_request", "say what is needed to go on");
        }
        self.book().declared = Some(Declared::Blocked { reason });
        DeskResponse::done(format!("{} is declared blocked; end your turn now", self.order.ticket.key))
    }

    fn prove(&self, mut kind: EvidenceKind) -> DeskResponse {
        match &mut kind {
            EvidenceKind::Command { command, output, .. } => {
                cut(command);
                cut(output);
            }
            EvidenceKind::File { path: text, .. } | EvidenceKind::Note { text } => cut(text),
            EvidenceKind::Test { .. } => {}
        }
        let evidence = Evidence { kind, timestamp: now() };
        self.book().evidence.push(evidence.clone());
        let name = evidence.kind.name();
        self.tell(Activity::Proved { evidence });
        DeskResponse::done(format!("the evidence ({name}) is noted"))
    }

    fn create(&self, ticket: NewTicket) -> DeskResponse {
        if !self.order.allow_followups {
            return DeskResponse::refused("not_allowed", "gates.allow_followups is off in this workflow");
        }
        if ticket.title.is_empty() {
            return DeskResponse::refused("bad_request", "the ticket has no title");
        }
        let number = {
            let mut book = self.book();
            book.follow_ups += 1;
            book.follow_ups
        };
        let key = format!("{}-followup-{number}", self.order.run);
        let title = ticket.title.clone();
        self.tell(Activity::FollowUp { ticket, key });
        DeskResponse::done(format!("the follow-up `{title}` will be created"))
    }

    /// Sends a request to the tracker's own API. What it wrote is reported as the worker's.
    async fn ask_service(&self, request: &serde_json::Value, tool: Option<&str>) -> DeskResponse {
        let refuse = |message: String| DeskResponse::refused("not_allowed", message);
        let service = self.order.service.as_ref().filter(|_| self.order.agent_tool != AgentTool::Off);
        let offered = service.and_then(|service| Some((service, service.api_tool()?)));
        let Some((service, offered)) = offered else {
            return refuse("this workflow gives workers no access to the tracker's API".to_owned());
        };
        if let Some(tool) = tool.filter(|tool| *tool != offered.name) {
            return refuse(format!("there is no tool `{tool}` in this run; `{}` is the tracker's", offered.name));
        }
        if !self.book().requests.may_look(Instant::now()) {
            return DeskResponse::refused("over", "you ask too often; wait a second");
        }
        match timeout(API_LIMIT, service.ask(self.order.agent_tool, request)).await {
            Ok(Ok(ApiOutcome { answer, wrote, declared })) => {
                if let Some(declared) = declared {
                    // An explicit declaration takes precedence over one that follows from moving the ticket.
                    self.book().declared.get_or_insert(declared);
                }
                if let Some(what) = wrote {
                    self.tell(Activity::Wrote { what });
                }
                let output = shortened(answer.output);
                match answer.success {
                    true => DeskResponse::done(output),
                    false => DeskResponse::refused("api", output),
                }
            }
            Ok(Err(message)) => DeskResponse::refused("api", message),
            Err(_) => DeskResponse::refused("api", "no answer in time; look before you repeat what writes"),
        }
    }

    /// Returns the ticket as it is now. If it cannot be read now, returns it as last read, with a note that says why.
    async fn look(&self) -> (Ticket, Option<String>) {
        let (last, may_look) = {
            let mut book = self.book();
            (book.ticket.clone(), book.looks.may_look(Instant::now()))
        };
        let last = last.unwrap_or_else(|| self.order.ticket.clone());
        if !may_look {
            return (last, Some("as it was a moment ago: you look too often".to_owned()));
        }
        match timeout(TRACKER_LIMIT, self.order.tickets.read(&self.order.ticket.id)).await {
            Ok(Ok(Some(ticket))) => {
                self.book().ticket = Some(ticket.clone());
                (ticket, None)
            }
            Ok(Ok(None)) => (last, Some("the ticket is gone from the tracker".to_owned())),
            Ok(Err(error)) => (last, Some(format!("as it was last read: {error}"))),
            Err(_) => (last, Some("as it was last read: the tracker is slow".to_owned())),
        }
    }

    async fn show(self: &Arc<Self>, only_new: bool) -> DeskResponse {
        let (ticket, stale) = self.look().await;
        let mut book = self.book();
        let seen = std::mem::take(&mut book.seen);
        book.seen =
            ticket.known_comments().iter().map(|comment| comment.id.clone()).chain(seen.iter().cloned()).collect();
        let words = if only_new { std::mem::take(&mut book.words) } else { book.words.clone() };
        drop(book);
        let remarks: Vec<RemarkKey> = words.iter().filter_map(|message| message.key.clone()).collect();
        self.delivered(&remarks);
        if !words.is_empty() {
            self.tell(Activity::Delivered { remarks });
        }
        let shown = if only_new {
            let fresh: Vec<_> = ticket
                .known_comments()
                .iter()
                .filter(|comment| !seen.contains(&comment.id) && !comment.author.ourselves)
                .collect();
            ticket_text::news(&fresh, &words, &self.order.audience)
        } else {
            ticket_text::whole(&ticket, &words, &self.order.audience)
        };
        let text = match stale {
            Some(note) => format!("{}\n({note})\n", shown.text),
            None => shown.text,
        };
        DeskResponse::with_data(text, shown.data)
    }

    fn tell(&self, activity: Activity) {
        // After the run nobody receives this any more; the report carries what counts.
        self.order.events.send(WorkerEvent::Activity(activity)).ok();
    }
}

/// The parts of a request that are checked before anything else.
#[derive(serde::Deserialize)]
struct Head {
    #[serde(default)]
    v: u32,
    #[serde(default)]
    token: String,
}

/// Compares in constant time for texts of the same length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (x, y)| different | (x ^ y)) == 0
}

/// Truncates a response of the API, and says so at its end.
fn shortened(mut text: String) -> String {
    if text.len() > API_ANSWER_LIMIT {
        let end = (0..=API_ANSWER_LIMIT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n(cut here: ask for less at once, for instance with per_page)");
    }
    text
}

/// Truncates a text to its end, which is the important part of an output.
fn cut(text: &mut String) {
    if text.len() > EVIDENCE_LIMIT {
        let from = text.len() - EVIDENCE_LIMIT;
        let start = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        *text = format!("[cut]{}", text.get(start..).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_looks_all_the_time_is_answered_from_memory() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        let made = (0..10_000).filter(|_| looks.may_look(start)).count();
        assert_eq!(made, LOOKS as usize);
        assert!(!looks.may_look(start + LOOK_EVERY / 2));
        assert!(looks.may_look(start + LOOK_EVERY));
        assert!(!looks.may_look(start + LOOK_EVERY));
        let later = start + LOOK_EVERY * 1000;
        assert_eq!((0..100).filter(|_| looks.may_look(later)).count(), LOOKS as usize);
    }
}
