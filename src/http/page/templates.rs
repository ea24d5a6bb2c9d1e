//! The page's templates: Handlebars with every value escaped, compiled in. A missing value is an error, as in prompts.
//!
//! No template may write a value unescaped (`{{{` or `{{&`); a test checks all of them. The one helper that writes tags (`prose`) escapes
//! its argument itself.

use std::sync::LazyLock;

use handlebars::{Context, Handlebars, Helper, HelperResult, Output, RenderContext, RenderError, html_escape};
use serde::Serialize;
use serde_json::Value as Json;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum PageError {
    #[error("the page cannot be made: {0}")]
    Template(#[from] RenderError),
    #[error("what the page shows cannot be put into words: {0}")]
    Data(#[from] serde_json::Error),
}

const TEMPLATES: &[(&str, &str)] = &[
    ("head", include_str!("../../../templates/page/head.hbs")),
    ("foot", include_str!("../../../templates/page/foot.hbs")),
    ("age", include_str!("../../../templates/page/age.hbs")),
    ("verdict", include_str!("../../../templates/page/verdict.hbs")),
    ("actions", include_str!("../../../templates/page/actions.hbs")),
    ("cards", include_str!("../../../templates/page/cards.hbs")),
    ("need", include_str!("../../../templates/page/need.hbs")),
    ("runs", include_str!("../../../templates/page/runs.hbs")),
    ("board", include_str!("../../../templates/page/board.hbs")),
    ("landing", include_str!("../../../templates/page/landing.hbs")),
    ("graph", include_str!("../../../templates/page/graph.hbs")),
    ("caps", include_str!("../../../templates/page/caps.hbs")),
    ("dashboard", include_str!("../../../templates/page/dashboard.hbs")),
    ("phase", include_str!("../../../templates/page/phase.hbs")),
    ("conditions", include_str!("../../../templates/page/conditions.hbs")),
    ("receipt", include_str!("../../../templates/page/receipt.hbs")),
    ("diff", include_str!("../../../templates/page/diff.hbs")),
    ("ticket", include_str!("../../../templates/page/ticket.hbs")),
    ("login", include_str!("../../../templates/page/login.hbs")),
    ("missing", include_str!("../../../templates/page/missing.hbs")),
];

static REGISTRY: LazyLock<Handlebars<'static>> = LazyLock::new(|| {
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    registry.register_escape_fn(html_escape);
    registry.register_helper("prose", Box::new(prose));
    for (name, text) in TEMPLATES {
        // A template with an error stays unregistered, which makes rendering fail; a test renders each one.
        let _ = registry.register_template_string(name, tight(text));
    }
    registry
});

/// A page before rendering: the name of its template and the data.
#[derive(Debug)]
pub struct PageDraft {
    template: &'static str,
    data: Json,
}

impl PageDraft {
    pub fn new(template: &'static str, data: &impl Serialize) -> Result<Self, PageError> {
        Ok(Self { template, data: serde_json::to_value(data)? })
    }

    /// Renders the page. `clean` removes secrets and paths from every text before escaping, which could make them unrecognisable.
    pub fn html(mut self, clean: impl Fn(&str) -> String) -> Result<String, PageError> {
        sweep(&mut self.data, &clean);
        Ok(REGISTRY.render(self.template, &self.data)?)
    }
}

fn sweep(data: &mut Json, clean: &impl Fn(&str) -> String) {
    match data {
        Json::String(text) => {
            *text = clean(text);
            if text.contains(turns_around) {
                *text = shown_as_they_are(text);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| sweep(item, clean)),
        Json::Object(fields) => fields.values_mut().for_each(|value| sweep(value, clean)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Whether a character is an invisible one that changes the direction of text. With these, code can read differently than it runs.
fn turns_around(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn shown_as_they_are(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if turns_around(letter) { out.push_str(&format!("[U+{:04X}]", u32::from(letter))) } else { out.push(letter) }
    }
    out
}

/// Removes indentation and empty lines, which are only for readers of the templates.
fn tight(text: &str) -> String {
    text.lines().map(str::trim_start).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Writes a sentence. Text in backticks is shown as code.
fn prose(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let text = helper.param(0).and_then(|param| param.value().as_str()).unwrap_or_default();
    out.write(&marked_up(text))?;
    Ok(())
}

fn marked_up(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut html = String::with_capacity(text.len() + 32);
    for (at, part) in parts.iter().enumerate() {
        let escaped = html_escape(part);
        match (at % 2 == 1, at + 1 == parts.len()) {
            (true, false) => html.push_str(&format!("<code>{escaped}</code>")),
            // A backtick without a partner is shown as a backtick.
            (true, true) => html.push_str(&format!("`{escaped}")),
            (false, _) => html.push_str(&escaped),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_template_writes_a_value_unescaped_or_a_style_or_script_in_line() {
        for (name, text) in TEMPLATES {
            for bad in ["{{{", "{{&", "style=", "<style", "onclick", "onload", "javascript:", "http://", "https://"] {
                assert!(!text.contains(bad), "{name} holds {bad}");
            }
            for script in text.match_indices("<script").map(|(at, _)| &text[at..]) {
                assert!(script.starts_with("<script src=\"/assets/"), "{name} has a script in line");
            }
        }
    }

    #[test]
    fn every_template_is_understood() {
        for (name, _) in TEMPLATES {
            assert!(REGISTRY.has_template(name), "{name} is not understood");
        }
    }

    #[test]
    fn letters_that_turn_others_around_are_shown() {
        let mut data = serde_json::json!({ "lines": ["if admin \u{202e} } // \u{2066}", "plain"] });
        sweep(&mut data, &|text: &str| text.to_owned());
        assert_eq!(data["lines"][0], "if admin [U+202E] } // [U+2066]");
        assert_eq!(data["lines"][1], "plain");
    }

    #[test]
    fn what_stands_in_backticks_is_code_and_everything_is_escaped() {
        assert_eq!(marked_up("run `a <b>` & go"), "run <code>a &lt;b&gt;</code> &amp; go");
        assert_eq!(marked_up("one ` <i>"), "one ` &lt;i&gt;");
        assert_eq!(marked_up("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;");
    }
}
