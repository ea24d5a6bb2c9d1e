//! Files for outside readers.
