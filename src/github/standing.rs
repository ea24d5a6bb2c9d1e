//! Whether a write that waited for its turn may still leave. Between its permit and its turn at GitHub's pace lie seconds, in which somebody
//! may have pulled a switch.

use std::sync::Arc;

/// What a permit stands on.
pub trait PermitGrounds: Send + Sync {
    /// Whether it would be given again now.
    fn holds(&self) -> bool;
}

tokio::task_local! {
    static STANDING: Arc<dyn PermitGrounds>;
}

/// Does `call`, of which nothing is written any more once `standing` does not hold.
pub async fn while_it_holds<F: Future>(standing: Arc<dyn PermitGrounds>, call: F) -> F::Output {
    STANDING.scope(standing, call).await
}

/// Nobody said on what the write around us stands, or it still does.
pub fn holds() -> bool {
    STANDING.try_with(|standing| standing.holds()).unwrap_or(true)
}
