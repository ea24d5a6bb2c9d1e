//! Instructions that people give in comments: each is carried out once, by the same rules as a command at the terminal, and answered in the
//! same place.

use super::answers::answer_key;
use super::effect::{Action, Said, ToldIn};
use super::event::OperatorCommand;
use super::people::{holding, is_so_already, objection, where_it_stands};
use super::provenance::proven_key;
use super::reconcile::is_starting;
use super::remarks::{self, from_comment};
use super::select;
use super::step::Step;
use super::view;
use crate::config::policy::Policy;
use crate::domain::comment::{Acknowledgement, Comment};
use crate::domain::hash::stable_hash;
use crate::domain::ids::{CommentId, CommitId, PrNumber, TicketId};
use crate::domain::instruction::{self, Instruction};
use crate::domain::job::{Job, NamedHead, Stage};
use crate::domain::pr::ReviewThread;
use crate::domain::remark::{Remark, RemarkEffect, RemarkKey, RemarkKind};
use crate::domain::time::Timestamp;

/// A comment that gives the runner instructions.
#[derive(Clone)]
pub struct Told {
    pub instructions: Vec<Instruction>,
    /// The comment itself, as a remark: author, place, time and version.
    pub comment: Remark,
    pub pr: Option<PrNumber>,
    /// The head that the runner's last comment before this one names.
    pub sees: Option<CommitId>,
    /// Conversations on the pull request in which the runner had answered before this comment, each with the key of the answer.
    pub answered: Vec<(CommentId, String)>,
}

/// Returns the instructions of a comment, or `None` if it has none.
pub fn told_in(comment: &Comment, kind: RemarkKind, policy: &Policy, now: Timestamp) -> Option<Told> {
    let spoken = instruction::read(&comment.body, &policy.tracker.mention);
    (!spoken.instructions.is_empty()).then(|| Told {
        instructions: spoken.instructions,
        comment: from_comment(kind, comment, policy, now),
        pr: None,
        sees: None,
        answered: Vec::new(),
    })
}

/// Returns the head that the author of `comment` had seen, because the comment stands below one of the runner's that names it.
pub fn seen_before(comment: &Comment, all: &[Comment], place: RemarkKind, named: &[NamedHead]) -> Option<CommitId> {
    let named = named.iter().find(|named| named.place == place)?;
    let mut before = all.iter().take_while(|other| other.id != comment.id);
    before.any(|other| other.id == named.comment).then(|| named.head.clone())
}

/// Returns the conversations in which the author of `comment` could read an answer of the runner, each with the answer's key. All of them are
/// dated by the same forge.
pub fn answered_before(
    comment: &Comment,
    threads: &[ReviewThread],
    secret: &str,
    ticket: &TicketId,
) -> Vec<(CommentId, String)> {
    let Some(written) = comment.updated_at.or(comment.created_at) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads {
        let before = thread.comments.iter().filter(|answer| answer.created_at.is_some_and(|at| at < written));
        let keys = before.filter_map(|answer| proven_key(secret, ticket, &answer.body));
        found.extend(keys.map(|key| (thread.id.clone(), key.to_owned())));
    }
    found
}

/// Whether the comment says anything besides instructions. A rejection counts as saying something.
pub fn is_evidence(comment: &Comment, policy: &Policy) -> bool {
    let spoken = instruction::read(&comment.body, &policy.tracker.mention);
    let rejects = |one: &Instruction| matches!(one, Instruction::Reject { .. });
    spoken.instructions.is_empty() || !spoken.words.is_empty() || spoken.instructions.iter().any(rejects)
}

impl Step<'_> {
    /// Carries out the instructions of a comment. With `trusted` false the author's words do not count, and that is only noted.
    pub fn told(&mut self, id: &TicketId, told: &Told, trusted: bool) {
        let fresh = self.not_heard(id, told);
        if fresh.is_empty() {
            return;
        }
        let (by, name) = (told.comment.author.clone(), self.policy.tracker.mention.clone());
        if !trusted {
            let verbs: Vec<&str> = fresh.iter().map(Instruction::verb).collect();
            let text =
                format!("{by} wrote `/{name} {}`, and is not somebody whose words count here", verbs.join("`, `"));
            self.note(Some(id), "not_listened_to", text);
            return;
        }
        let mut answers = Vec::new();
        let mut how = Acknowledgement::Seen;
        for instruction in &fresh {
            let verb = instruction.verb();
            let place = told.comment.key.kind.name();
            let comment = &told.comment.key.id;
            self.note(Some(id), "told", format!("{by} in {place} {comment}: /{name} {verb}"));
            answers.push(match self.carry_out(id, told, instruction) {
                Ok(answer) => answer,
                Err(because) => {
                    how = Acknowledgement::Refused;
                    self.note(Some(id), "refused", format!("/{name} {verb} of {by} was not carried out: {because}"));
                    format!("`/{name} {verb}` was not carried out: {because}")
                }
            });
        }
        let aloud = how == Acknowledgement::Refused || fresh.contains(&Instruction::Explain);
        self.acknowledge(id, told, how, aloud, answers.join("\n\n"));
    }

    /// Handles instructions that were on the ticket before it had a job. Only a standing stop or pause and a request to work on it count;
    /// the others are about work that did not exist yet.
    pub fn told_before(&mut self, id: &TicketId, earlier: &[Told]) {
        let (mut wanted, mut standing) = (None, None);
        for told in earlier {
            for instruction in self.not_heard(id, told) {
                let one = Told { instructions: vec![instruction.clone()], ..told.clone() };
                match instruction {
                    Instruction::Run => wanted = Some(one),
                    Instruction::Stop | Instruction::Pause => standing = Some(one),
                    Instruction::Resume | Instruction::Retry => standing = None,
                    _ => {}
                }
            }
        }
        let lacks_label = |job: &Job| !select::missing_labels(&job.ticket, self.policy).is_empty();
        let wanted = wanted.filter(|_| self.state.jobs.get(id).is_some_and(lacks_label));
        for told in wanted.into_iter().chain(standing) {
            self.state.jobs.edit(id, |job| job.people.heard.retain(|hash| *hash != told.hash(&told.instructions[0])));
            self.told(id, &told, true);
        }
    }

    /// Returns the instructions of this comment that were not heard before, and marks them as heard.
    fn not_heard(&mut self, id: &TicketId, told: &Told) -> Vec<Instruction> {
        let Some(job) = self.state.jobs.get(id) else { return Vec::new() };
        let is_new = |one: &&Instruction| !job.people.heard.contains(&told.hash(one));
        let fresh: Vec<Instruction> = told.instructions.iter().filter(is_new).cloned().collect();
        if !fresh.is_empty() {
            self.state.jobs.edit(id, |job| job.people.heard.extend(fresh.iter().map(|one| told.hash(one))));
        }
        fresh
    }

    /// Carries an instruction out and returns the answer, or the reason why not as an error.
    fn carry_out(&mut self, id: &TicketId, told: &Told, instruction: &Instruction) -> Result<String, String> {
        let ticket = id.clone();
        let command = match instruction {
            Instruction::Run => return self.wanted(id, told),
            Instruction::Explain => return Ok(self.account(id)),
            Instruction::Unclear { because, .. } => return Err(because.clone()),
            Instruction::Reject { text } => OperatorCommand::Reject { ticket: id.clone(), text: text.clone() },
            Instruction::Approve { head, anyway } => {
                let overrule = if *anyway { self.standing_then(id, told) } else { Vec::new() };
                OperatorCommand::Approve { ticket, head: head.clone().map(CommitId::new), overrule }
            }
            Instruction::Retry => OperatorCommand::Retry { ticket },
            Instruction::Stop => OperatorCommand::Stop { ticket },
            Instruction::Pause => OperatorCommand::Pause { ticket },
            Instruction::Resume => OperatorCommand::Resume { ticket },
        };
        if let Some(already) = is_so_already(self.state, &command) {
            return Ok(already);
        }
        let objection = objection(self.state, &command);
        match (instruction, objection) {
            (Instruction::Reject { text }, objection) => {
                // The person's words are kept, whether or not there is anything to change now.
                let starting = self.state.jobs.get(id).is_some_and(|job| is_starting(job, &self.state.runs));
                let effect = if starting { RemarkEffect::None } else { RemarkEffect::Rework };
                let remark = Remark { text: text.clone(), effect, ..told.comment.clone() };
                match objection {
                    Some(because) => {
                        self.remark_came(id, remark);
                        return Err(format!("{because}; the words are kept, in case it is taken up again"));
                    }
                    None => self.rejected(id.clone(), remark),
                }
            }
            (_, Some(because)) => return Err(because),
            (_, None) => {
                if let OperatorCommand::Approve { head, overrule, .. } = &command {
                    self.saw_it(id, told, head.is_some(), overrule)?;
                }
                self.obey(command, told.comment.author.clone());
            }
        }
        let job = self.state.jobs.get(id);
        Ok(job.map(|job| where_it_stands(self.state, self.policy, job, self.now)).unwrap_or_default())
    }

    /// Returns the remarks that stood against a merge when the person wrote, and none that came later.
    fn standing_then(&self, id: &TicketId, told: &Told) -> Vec<RemarkKey> {
        let known = self.state.jobs.get(id).map(|job| &job.people);
        let was_there = |key: &RemarkKey| {
            known.and_then(|people| people.remark(key)).is_some_and(|remark| remark.at <= told.comment.at)
        };
        holding(self.state, id).into_iter().filter(was_there).collect()
    }

    /// Checks that the person has seen what they approve. An approval without a head is about the one that the runner's last comment before
    /// it names. And a person who wrote before it could be known how remarks were dealt with has not seen that.
    fn saw_it(&self, id: &TicketId, told: &Told, names_it: bool, overrule: &[RemarkKey]) -> Result<(), String> {
        let Some(job) = self.state.jobs.get(id) else { return Ok(()) };
        let Some(head) = job.current_head().filter(|head| told.sees.as_ref() != Some(head)) else { return Ok(()) };
        let (short, name) = (head.short(), &self.policy.tracker.mention);
        if !names_it {
            return Err(format!(
                "it names no commit, and no words of ours before it name {short}, which is the head now; look at it, then say `/{name} approve {short}`"
            ));
        }
        let unknown = |remark: &&Remark| !overrule.contains(&remark.key) && !is_known(job, head, told, remark);
        match job.people.dealt_with().find(unknown) {
            Some(remark) => Err(format!(
                "a run has dealt with what {} wrote, and nothing of ours before your words tells that; look at {short}, then say `/{name} approve {short}` again",
                remark.author
            )),
            None => Ok(()),
        }
    }

    /// Handles `run`: a person wants the ticket worked on.
    fn wanted(&mut self, id: &TicketId, told: &Told) -> Result<String, String> {
        let Some(job) = self.state.jobs.get(id) else { return Err("the ticket is not known here".to_owned()) };
        let (key, phase) = (job.ticket.key.clone(), job.stage.phase());
        if let Some(because) = select::not_ours(&job.ticket, self.policy) {
            return Err(format!("{key} is not ours: {because}"));
        }
        let missing = select::missing_labels(&job.ticket, self.policy);
        if missing.iter().any(|label| label.trim().is_empty()) {
            return Err("the workflow requires a label without a name, which no ticket can have".to_owned());
        }
        if !missing.is_empty() {
            let said = format!("{key} gets the label {}, and is worked on when its turn comes", missing.join(", "));
            let told = told.place();
            self.emit(Some(id), Action::AddLabels { labels: missing, told });
            return Ok(said);
        }
        if let Some(because) = select::not_let_in(&job.ticket, self.policy) {
            return Err(format!("{key} is not worked on: {because}"));
        }
        match &job.stage {
            Stage::Queued { .. } => Ok(where_it_stands(self.state, self.policy, job, self.now)),
            Stage::Released { .. } | Stage::Blocked { .. } => {
                let reason = view::reason(self.state, self.policy, job, self.now);
                Err(format!("{key} is {phase}: {}. {}", reason.sentence, reason.next))
            }
            _ => Err(format!("{key} is {phase} already")),
        }
    }

    /// Returns how the ticket stands, in a few lines.
    fn account(&self, id: &TicketId) -> String {
        let Some(job) = self.state.jobs.get(id) else { return "The ticket is not known here.".to_owned() };
        let reason = view::reason(self.state, self.policy, job, self.now);
        let mut lines = vec![format!("{} is {}: {}.", job.ticket.key, job.stage.phase(), reason.sentence)];
        if let Some(head) = job.current_head() {
            let pr = job.delivery.pr.as_ref().map(|pr| format!(", pull request {}", pr.number)).unwrap_or_default();
            lines.push(format!("Branch `{}` is at {}{pr}.", job.delivery.branch.name, head.short()));
        }
        let standing = job.people.holding().map(|remark| format!("- {}", remarks::clipped(&remark.sentence())));
        lines.extend(standing.take(10));
        lines.push(format!("What would move it on: {}.", reason.next));
        lines.join("\n")
    }

    pub fn acknowledge(&mut self, id: &TicketId, told: &Told, how: Acknowledgement, aloud: bool, text: String) {
        let heads = self.state.jobs.get(id).and_then(Job::current_head).cloned();
        let head = heads.filter(|head| text.contains(head.short()));
        let asked = serde_json::to_string(&told.instructions).unwrap_or_default();
        let key = format!("reply:{}:{:08x}", told.comment.key.id, stable_hash(&[&asked]) & 0xffff_ffff);
        let said = Said::Reply { to: told.comment.author.clone(), text, head };
        self.emit(Some(id), Action::Acknowledge { told: told.place(), how, aloud, key, said });
    }
}

/// Whether a person who names this head has seen how the remark was dealt with: the run that did it made this very head, whose name nobody
/// knew before, or its answer stands in the remark's conversation, above their words.
fn is_known(job: &Job, head: &CommitId, told: &Told, remark: &Remark) -> bool {
    let Some(run) = remark.dealt_with_by() else { return false };
    let delivery = &job.delivery;
    let made_it = delivery.made_by.as_ref() == Some(run)
        && delivery.pushed_head.as_ref() == Some(head)
        && !delivery.unpublished.contains(run);
    let is_answer = |(thread, key): &(CommentId, String)| *thread == remark.key.id && *key == answer_key(run);
    made_it || (remark.key.kind == RemarkKind::Thread && told.answered.iter().any(is_answer))
}

impl Told {
    pub fn place(&self) -> ToldIn {
        ToldIn { comment: self.comment.key.id.clone(), pr: self.pr }
    }

    /// Returns a hash that identifies one instruction of this comment. It stays the same when the words around the instruction are edited.
    fn hash(&self, instruction: &Instruction) -> u64 {
        let words = serde_json::to_string(instruction).unwrap_or_default();
        stable_hash(&[self.comment.key.kind.name(), self.comment.key.id.as_str(), &words])
    }
}
