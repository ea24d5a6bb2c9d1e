//! The agents' languages: recorded conversations of the real clients replayed through each protocol, mutated, and, where the
//! clients are installed (`DIRIGENT_AGENTS_PREFIX`), held live against a scripted model on loopback.

mod clients;
mod end_to_end;
mod live;
mod model_server;
mod models;
mod mutations;
mod one_shot;
mod recording;
mod replay;
mod restart;
mod scenarios;
mod self_test;
