//! The HTTP side: listening, who asks, limits, faults, the record of what was asked.

pub mod caller;
pub mod dispatch;
pub mod exchange;
pub mod faults;
pub mod journal;
pub mod limits;
pub mod listener;
pub mod paging;
pub mod transport;
