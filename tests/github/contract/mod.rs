//! GitHub's published contracts, cut to what we use: see `tests/contracts`.

pub mod answer;
pub mod graphql;
pub mod rest;
pub mod route;
