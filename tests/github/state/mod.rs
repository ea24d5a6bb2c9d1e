//! What the loopback GitHub knows: users, tokens, repositories and everything in them.

pub mod actions;
pub mod app;
pub mod clock;
pub mod git;
pub mod issue;
pub mod lag;
pub mod project;
pub mod pull;
pub mod repo;
pub mod rules;
pub mod user;
pub mod world;

pub use actions::{Check, Job, Run, Status};
pub use clock::shown;
pub use issue::{Comment, Event, Happened, Issue, Reaction};
pub use lag::{Home, Lag, Thing};
pub use pull::{Pull, Review, ReviewComment, Thread};
pub use repo::{Label, Milestone, Permission, Repo};
pub use user::{Token, TokenKind, UserKind};
pub use world::World;
