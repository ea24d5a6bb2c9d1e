//! Follows the pages of a list to its end.

use std::collections::BTreeSet;

use crate::tracker::TrackerError;

/// The most pages of any list. A list with more is an error.
const MOST_PAGES: usize = 1000;

/// The cursors that were followed. A repeated cursor means that the pages form a circle.
#[derive(Debug, Default)]
pub struct Cursors(BTreeSet<String>);

impl Cursors {
    /// Returns the cursor of the next page. `None` if this page was the last.
    pub fn after(&mut self, has_next: bool, cursor: Option<String>) -> Result<Option<String>, TrackerError> {
        if !has_next {
            return Ok(None);
        }
        let Some(cursor) = cursor else {
            return Err(TrackerError::Pagination("there is a next page, and no way to it".to_owned()));
        };
        if self.0.len() == MOST_PAGES {
            return Err(TrackerError::Pagination(format!("a list has more than {MOST_PAGES} pages")));
        }
        if !self.0.insert(cursor.clone()) {
            return Err(TrackerError::Pagination(
                "Linear names a page as the next one that was read before".to_owned(),
            ));
        }
        Ok(Some(cursor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_goes_on_or_is_broken() {
        let mut pages = Cursors::default();
        assert_eq!(pages.after(true, Some("a".into())), Ok(Some("a".into())));
        assert_eq!(pages.after(true, Some("b".into())), Ok(Some("b".into())));
        assert!(matches!(pages.after(true, Some("a".into())), Err(TrackerError::Pagination(_))), "a circle of two");
        assert!(matches!(pages.after(true, None), Err(TrackerError::Pagination(_))));
        assert_eq!(pages.after(false, Some("c".into())), Ok(None), "the last page may have a cursor");
    }
}
