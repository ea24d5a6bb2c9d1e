//! Version 1: the first tables.

use super::{Migration, Records};

pub const MIGRATION: Migration = Migration {
    sql: "
    CREATE TABLE meta (name TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT;
    CREATE TABLE jobs (
        ticket TEXT PRIMARY KEY, key TEXT NOT NULL, phase TEXT NOT NULL, updated_at INTEGER NOT NULL, json TEXT NOT NULL
    ) STRICT;
    CREATE INDEX jobs_by_key ON jobs (key);
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, ticket TEXT NOT NULL, started_at INTEGER NOT NULL,
        ended_at INTEGER, outcome TEXT, json TEXT NOT NULL
    ) STRICT;
    CREATE INDEX runs_by_ticket ON runs (ticket, started_at);
    CREATE INDEX runs_live ON runs (id) WHERE ended_at IS NULL;
    CREATE TABLE outbox (id INTEGER PRIMARY KEY, ticket TEXT, kind TEXT NOT NULL, json TEXT NOT NULL) STRICT;
    CREATE TABLE notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, ticket TEXT, run TEXT, code TEXT NOT NULL, text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX notes_by_ticket ON notes (ticket, id);
    CREATE TABLE preflight (hash TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
",
    records: Records::UNCHANGED,
};
