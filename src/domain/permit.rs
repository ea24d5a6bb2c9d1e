//! Proof that one write to the outside was allowed.
//!
//! Every adapter method that writes takes a `Permit`. Only `engine::permit` issues one, and the architecture test checks that no other code
//! calls `Permit::issue`. So no write can bypass that check.

/// Allows the one effect that it was issued for. Not `Clone`, so that it cannot be used twice.
#[derive(Debug)]
pub struct Permit {
    _private: (),
}

impl Permit {
    /// Makes a permit. Only `engine::permit` may call this.
    pub(crate) fn issue() -> Self {
        Self { _private: () }
    }
}
