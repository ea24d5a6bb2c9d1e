//! The pages that name tests name tests that there are.

use std::path::Path;

fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_page_on_reliability_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    for folder in ["src", "tests"] {
        sources(&root.join(folder), &mut code);
    }
    let page = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let mut named = 0;
    for quoted in page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2))
    {
        // Some are cut short, and commands are no tests.
        let Some((_, name)) = quoted.rsplit_once("::").filter(|(_, name)| !name.is_empty() && !quoted.contains("..."))
        else {
            continue;
        };
        named += 1;
        assert!(code.contains(&format!("fn {name}(")), "docs/reliability.md names `{quoted}`, which is not there");
    }
    assert!(named > 40, "the tables were not found");
}
