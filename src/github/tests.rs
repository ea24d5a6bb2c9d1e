//! Tests of how the client encodes paths and names.

use super::*;

#[test]
fn names_of_people_and_labels_fit_into_a_path() {
    assert_eq!(segment("good first issue"), "good%20first%20issue");
    assert_eq!(segment("später/heute"), "sp%C3%A4ter%2Fheute");
    assert_eq!(with_query("/issues", &[]), "/issues");
    assert_eq!(with_query("/issues", &[("since", "2026-01-01T00:00:00Z")]), "/issues?since=2026-01-01T00:00:00Z");
    assert_eq!(with_query("/issues", &[("labels", "a&b")]), "/issues?labels=a%26b");
}
