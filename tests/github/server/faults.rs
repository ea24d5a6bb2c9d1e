//! What a test lets go wrong, route by route.

use serde_json::{Value, json};

use super::exchange::{Answer, Body, Delivery};
use super::journal::matches;

pub type Edit = Box<dyn Fn(&mut Value) + Send>;

/// What comes instead of the answer.
pub enum Instead {
    /// This status, with a message as GitHub words it.
    Status(u16),
    /// This status, with a page for people.
    Html(u16),
    /// 422 with these errors.
    Unprocessable(Value),
    /// 403 that is a permission, with GitHub's words for it.
    Forbidden,
    /// 403 or 429 that is the secondary limit; the seconds are said if there are any.
    SecondaryLimit {
        status: u16,
        retry_after: Option<u64>,
    },
    /// The right answer, cut in half.
    Truncated,
    /// The right answer, with a `Link` to the same page.
    LoopingLink,
    /// The right answer, changed, and not held against the contract: what GitHub does and does not describe.
    Edited(Edit),
    /// The right answer, changed, and held against the contract.
    EditedAndChecked(Edit),
    Silence,
    Disconnect,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// The request is not looked at.
    Before,
    /// The request took effect; only its answer is lost.
    After,
}

/// The route of a fault that whatever changes something meets.
pub const ANY_WRITE: &str = "any write";

pub struct Fault {
    pub route: String,
    pub when: When,
    pub instead: Instead,
    /// So many requests are answered rightly first.
    pub skip: u32,
    /// So many requests meet it.
    pub times: u32,
}

#[derive(Default)]
pub struct Faults {
    pub list: Vec<Fault>,
}

impl Faults {
    /// The place of the fault that a request meets, which then counts as met.
    pub fn meet(&mut self, route: &str, writes: bool) -> Option<usize> {
        let fits = |fault: &Fault| matches(&fault.route, route) || (writes && fault.route == ANY_WRITE);
        let index = self.list.iter().position(|fault| fault.times > 0 && fits(fault))?;
        let fault = &mut self.list[index];
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.times -= 1;
        Some(index)
    }
}

impl Instead {
    pub fn apply(&self, answer: Answer) -> Delivery {
        let whole = |answer: Answer| Delivery::Whole(Answer { general: true, ..answer });
        match self {
            Self::Status(status) => whole(Answer::general(*status, reason(*status))),
            Self::Html(status) => {
                let page = format!("<html><head><title>{status}</title></head><body>Unicorn!</body></html>");
                whole(Answer::raw(*status, "text/html; charset=utf-8", page.into_bytes()))
            }
            Self::Unprocessable(errors) => whole(Answer::json(
                422,
                json!({"message": "Validation Failed", "errors": errors, "documentation_url": "https://docs.github.com/rest"}),
            )),
            Self::Forbidden => whole(Answer::general(403, "Resource not accessible by personal access token")),
            Self::SecondaryLimit { status, retry_after } => {
                let words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
                let refusal = Answer::general(*status, words);
                whole(match retry_after {
                    Some(seconds) => refusal.with("retry-after", seconds.to_string()),
                    None => refusal,
                })
            }
            Self::Truncated => Delivery::Truncated(answer),
            Self::LoopingLink => {
                let mut answer = answer;
                answer.headers.retain(|(name, _)| name != "link");
                let here = answer.headers.iter().find(|(name, _)| name == "x-here").map(|(_, url)| url.clone());
                whole(answer.with("link", format!("<{}>; rel=\"next\"", here.unwrap_or_default())))
            }
            Self::Edited(edit) | Self::EditedAndChecked(edit) => {
                let mut answer = answer;
                if let Body::Json(body) = &mut answer.body {
                    edit(body);
                }
                Delivery::Whole(answer)
            }
            Self::Silence => Delivery::Silence,
            Self::Disconnect => Delivery::Disconnect,
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        401 => "Bad credentials",
        404 => "Not Found",
        410 => "This issue was deleted",
        451 => "Repository access blocked",
        500 => "Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Something went wrong",
    }
}
