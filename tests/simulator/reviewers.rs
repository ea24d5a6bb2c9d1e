//! What people do to a pull request: verdicts, conversations, comments, another base, a push, an end.

use dirigent::domain::comment::{Author, TrustLevel, text_version};
use dirigent::domain::ids::CommentId;
use dirigent::domain::pr::{CheckStatus, Mergeability, PrState, PullRequest, Review, Verdict};
use dirigent::domain::remark::{RemarkKey, RemarkKind};
use dirigent::domain::time::Timestamp;

use super::chance::Chance;
use super::engine::fixtures::{SWITCH_LABEL, check, comment, thread};
use super::people::INSTRUCTIONS;
use super::world::World;

/// Somebody whose words do not count.
const STRANGER: &str = "mallory";

const REVIEWERS: [&str; 2] = ["rob", "sue"];

/// Somebody does something to a pull request that is open.
pub fn act(world: &mut World, number: u64, now: Timestamp, chance: &mut Chance) -> String {
    if !world.prs.get(&number).is_some_and(|pr| pr.state == PrState::Open) {
        return format!("#{number} is not there to be reviewed");
    }
    let who = *chance.pick(&REVIEWERS);
    let files = vec!["src/lib.rs".to_owned()];
    match chance.below(31) {
        28..=30 => instructs(world, number, who, now, chance),
        0 => with_pr(world, number, now, |pr| pr.state = PrState::Closed, "closed"),
        1 => with_pr(world, number, now, |pr| pr.state = PrState::Merged { commit: None }, "merged by a person"),
        2 => with_pr(world, number, now, |pr| pr.labels = vec![SWITCH_LABEL.into()], "labelled to stop"),
        3 => with_pr(world, number, now, |pr| pr.labels.clear(), "unlabelled"),
        4 | 5 => checked(world, number, CheckStatus::Failed, now),
        6 => checked(world, number, CheckStatus::Pending, now),
        7 => checked(world, number, CheckStatus::Passed, now),
        8 => with_pr(world, number, now, |pr| pr.mergeability = Mergeability::Conflicting { files }, "in conflict"),
        9 => with_pr(world, number, now, |pr| pr.mergeability = Mergeability::Behind, "behind"),
        10 => with_pr(world, number, now, |pr| pr.mergeability = Mergeability::Clean, "clean"),
        11 | 12 => {
            let branch = world.prs[&number].head_branch.clone();
            world.person_pushes(&branch, now);
            format!("somebody pushes to the branch of #{number}")
        }
        13 => with_pr(world, number, now, |pr| pr.base_branch = "release".into(), "given another base"),
        14 => with_pr(world, number, now, |pr| pr.base_branch = "main".into(), "given its base back"),
        15..=17 => reviews(world, number, who, Verdict::ChangesRequested, chance.one_in(3), now),
        18 | 19 => reviews(world, number, who, Verdict::Approved, chance.one_in(6), now),
        20 => dismisses(world, number, now),
        21 | 22 => talks(world, number, who, chance.one_in(4), now),
        23 => settles_thread(world, number, true, now),
        24 => settles_thread(world, number, false, now),
        25 | 26 => comments(world, number, who, chance.one_in(2), now),
        _ => rewrites(world, number, chance.one_in(2), now),
    }
}

fn with_pr(
    world: &mut World,
    number: u64,
    now: Timestamp,
    change: impl FnOnce(&mut PullRequest),
    told: &str,
) -> String {
    if let Some(pr) = world.pr_mut(number, now) {
        change(pr);
    }
    format!("#{number} is {told}")
}

fn checked(world: &mut World, number: u64, status: CheckStatus, now: Timestamp) -> String {
    with_pr(world, number, now, |pr| pr.checks = Some(vec![check("build", status)]), &format!("{status:?}"))
}

/// A verdict on the head as it is, or on one that the reviewer has open since before the last push.
fn reviews(world: &mut World, number: u64, who: &str, verdict: Verdict, old_head: bool, now: Timestamp) -> String {
    let made = world.comment_id();
    let ticket = world.pr_owner[&number].clone();
    let head = world.prs[&number].head.clone();
    let before = world.parents.get(&head).and_then(|parents| parents.first()).cloned();
    let is_current = before.is_none() || !old_head;
    let head = before.filter(|_| old_head).unwrap_or(head);
    let body = format!("please, {made}");
    let id = CommentId::new(format!("review-{made}"));
    let key = RemarkKey { kind: RemarkKind::Verdict, id: id.clone(), version: text_version(&body) };
    let author = Author::new(who, TrustLevel::Member);
    let review = Review { id, author, verdict, head: Some(head.clone()), body, submitted_at: Some(now) };
    if let Some(pr) = world.pr_mut(number, now) {
        pr.reviews.get_or_insert_default().push(review);
    }
    // The last word of each reviewer counts.
    let own = |wish: &super::wishes::Wish| wish.key.kind == RemarkKind::Verdict && wish.author == who;
    world.wishes.end(now, |wish| wish.ticket == ticket && own(wish));
    if verdict == Verdict::ChangesRequested {
        world.wishes.say(&ticket, key, who, true);
    } else if is_current {
        world.approve(&ticket, &head, &[], now);
    }
    format!("{who} reviews #{number}: {verdict:?}{}", if old_head { " of an old head" } else { "" })
}

/// The last verdict that asks for changes does not count any more.
fn dismisses(world: &mut World, number: u64, now: Timestamp) -> String {
    let Some(pr) = world.pr_mut(number, now) else { return String::new() };
    let mut reviews = pr.reviews.iter_mut().flatten();
    let Some(last) = reviews.rfind(|review| review.verdict == Verdict::ChangesRequested) else {
        return format!("nobody asks for changes of #{number}");
    };
    last.verdict = Verdict::Dismissed;
    let id = last.id.clone();
    world.wishes.end_one(now, RemarkKind::Verdict, &id);
    format!("{id} is dismissed")
}

/// A new conversation, or another word in the last one that is not resolved.
fn talks(world: &mut World, number: u64, who: &str, goes_on: bool, now: Timestamp) -> String {
    let made = world.comment_id();
    let ticket = world.pr_owner[&number].clone();
    let mut said = comment(made, TrustLevel::Member, &format!("why, {made}?"));
    said.author.name = who.to_owned();
    said.created_at = Some(now);
    let version = said.version();
    let Some(pr) = world.pr_mut(number, now) else { return String::new() };
    let threads = pr.threads.get_or_insert_default();
    let last = threads.iter_mut().rfind(|thread| !thread.resolved).filter(|_| goes_on);
    let id = match last {
        Some(thread) => {
            thread.comments.push(said);
            thread.id.clone()
        }
        None => {
            let mut opened = thread(made, false);
            opened.comments = vec![said];
            let id = opened.id.clone();
            threads.push(opened);
            id
        }
    };
    world.wishes.end_one(now, RemarkKind::Thread, &id);
    world.wishes.say(&ticket, RemarkKey { kind: RemarkKind::Thread, id: id.clone(), version }, who, true);
    format!("{who} writes in {id} of #{number}")
}

/// The last conversation is resolved, or opened again.
fn settles_thread(world: &mut World, number: u64, resolve: bool, now: Timestamp) -> String {
    let ticket = world.pr_owner[&number].clone();
    let Some(pr) = world.pr_mut(number, now) else { return String::new() };
    let Some(last) = pr.threads.iter_mut().flatten().rfind(|thread| thread.resolved != resolve) else {
        return format!("#{number} has no such conversation");
    };
    last.resolved = resolve;
    let (id, said) = (last.id.clone(), last.comments.last().cloned());
    if resolve {
        world.wishes.end_one(now, RemarkKind::Thread, &id);
        world.resolved.insert(id.clone(), now);
    } else if let Some(said) = said {
        let key = RemarkKey { kind: RemarkKind::Thread, id: id.clone(), version: said.version() };
        world.wishes.reopen(&ticket, key, &said.author.name, world.resolved.get(&id).copied());
    }
    format!("{id} of #{number} is {}", if resolve { "resolved" } else { "opened again" })
}

fn comments(world: &mut World, number: u64, who: &str, addressed: bool, now: Timestamp) -> String {
    let made = world.comment_id();
    let ticket = world.pr_owner[&number].clone();
    let text = if addressed { format!("@dirigent mind this, {made}") } else { format!("wait for me, {made}") };
    let mut said = comment(made, TrustLevel::Member, &text);
    said.author.name = who.to_owned();
    said.created_at = Some(now);
    let key = RemarkKey { kind: RemarkKind::PrComment, id: said.id.clone(), version: said.version() };
    if let Some(pr) = world.pr_mut(number, now) {
        pr.comments.get_or_insert_default().push(said);
    }
    world.wishes.say(&ticket, key, who, addressed);
    format!("{who} comments on #{number}")
}

/// Somebody tells us on the pull request to do something.
fn instructs(world: &mut World, number: u64, who: &str, now: Timestamp, chance: &mut Chance) -> String {
    let made = world.comment_id();
    let ticket = world.pr_owner[&number].clone();
    let trust = if chance.one_in(4) { TrustLevel::Stranger } else { TrustLevel::Member };
    let trusted = trust == TrustLevel::Member;
    let head = world.prs[&number].head.clone();
    let what = *chance.pick(&INSTRUCTIONS);
    let words = match what {
        "approve" => format!("approve {head}"),
        "reject" => format!("reject otherwise, {made}"),
        other => other.to_owned(),
    };
    let mut said = comment(made, trust, &format!("/dirigent {words}"));
    said.author.name = if trusted { who.to_owned() } else { STRANGER.to_owned() };
    said.created_at = Some(now);
    world.told.insert(said.id.clone(), trusted);
    let key = RemarkKey { kind: RemarkKind::PrComment, id: said.id.clone(), version: said.version() };
    if let Some(pr) = world.pr_mut(number, now) {
        pr.comments.get_or_insert_default().push(said);
    }
    if trusted && what == "approve" {
        world.approve(&ticket, &head, &[], now);
    } else if trusted && what == "reject" {
        world.wishes.say(&ticket, key, who, true);
    }
    format!("{} tells us on #{number}: {words}", if trusted { who } else { "a stranger" })
}

/// The last comment is edited or deleted.
fn rewrites(world: &mut World, number: u64, delete: bool, now: Timestamp) -> String {
    let made = world.comment_id();
    let ticket = world.pr_owner[&number].clone();
    let Some(pr) = world.pr_mut(number, now) else { return String::new() };
    let Some(mut last) = pr.comments.get_or_insert_default().pop() else {
        return format!("nobody has commented on #{number}");
    };
    let id = last.id.clone();
    if !delete {
        last.body = format!("@dirigent mind that, {made}");
        last.updated_at = Some(now);
        pr.comments.get_or_insert_default().push(last.clone());
    }
    if delete {
        world.wishes.vanish(now, RemarkKind::PrComment, &id);
    } else {
        world.wishes.end_one(now, RemarkKind::PrComment, &id);
        // What a stranger writes is nobody's wish, in any version.
        if last.author.name != STRANGER {
            let key = RemarkKey { kind: RemarkKind::PrComment, id: id.clone(), version: last.version() };
            world.wishes.say(&ticket, key, &last.author.name, true);
        }
    }
    format!("{id} of #{number} is {}", if delete { "deleted" } else { "edited" })
}
