//! The dashboard.

use std::sync::Arc;

use axum::Router;

use super::Site;

/// Everything that is not the API. The guard has let in whoever comes here.
pub fn routes() -> Router<Arc<Site>> {
    Router::new()
}
