//! Proof that a mutation of the outside was allowed.
//!
//! Every adapter method that writes takes a `Permit`. Only `engine::permit` issues one, and the architecture test
//! checks that nobody else calls `Permit::issue`; so no write is reachable without the gate.

/// Allows the one effect it was issued for. Not `Clone`: it is used and gone.
#[derive(Debug)]
pub struct Permit {
    _private: (),
}

impl Permit {
    /// Only for `engine::permit`.
    pub(crate) fn issue() -> Self {
        Self { _private: () }
    }
}
