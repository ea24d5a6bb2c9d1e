//! The server's clock: the real one, which a test can put forward.

use jiff::{SignedDuration, Timestamp};

#[derive(Default, Clone)]
pub struct Clock {
    ahead: SignedDuration,
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    pub fn advance(&mut self, by: SignedDuration) {
        self.ahead += by;
    }
}

/// As GitHub writes it: whole seconds, so that two changes within one second have the same time.
pub fn shown(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As HTTP writes it.
pub fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
