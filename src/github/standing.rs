//! Whether a write that waited for its turn may still be sent. Seconds may lie between its permit and its turn, and a person may
//! have pulled a kill switch in between.

use std::sync::Arc;

/// The conditions under which a permit was given.
pub trait PermitGrounds: Send + Sync {
    /// Whether the permit would be given again now.
    fn holds(&self) -> bool;
}

tokio::task_local! {
    static STANDING: Arc<dyn PermitGrounds>;
}

/// Runs `call`. Once `standing` no longer holds, the call sends no further writes.
pub async fn while_it_holds<F: Future>(standing: Arc<dyn PermitGrounds>, call: F) -> F::Output {
    STANDING.scope(standing, call).await
}

/// Whether the write may be sent: the grounds of the surrounding permit still hold, or no grounds are set.
pub fn holds() -> bool {
    STANDING.try_with(|standing| standing.holds()).unwrap_or(true)
}
