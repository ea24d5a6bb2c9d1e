//! The stylesheet, the script and the icons. They are compiled in; nothing is loaded from other servers.

use std::sync::LazyLock;

use crate::domain::hash::stable_hash;

static STYLE: LazyLock<String> = LazyLock::new(|| lean(include_str!("../../../templates/page/style.css")));
static SCRIPT: LazyLock<String> = LazyLock::new(|| lean(include_str!("../../../templates/page/script.js")));
static VERSION: LazyLock<String> = LazyLock::new(|| format!("{:016x}", stable_hash(&[style(), script()])));

pub fn style() -> &'static str {
    &STYLE
}

pub fn script() -> &'static str {
    &SCRIPT
}

/// Removes what is only for readers of the file: indentation, empty lines and lines that are a comment.
fn lean(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns a hash that changes with either of them.
pub fn version() -> &'static str {
    &VERSION
}

pub const SVG: &str = "image/svg+xml";

/// Returns a file below `/assets/` by its name, with its content type.
pub fn file(name: &str) -> Option<(&'static str, String)> {
    Some(match name {
        "style.css" => ("text/css; charset=utf-8", style().to_owned()),
        "script.js" => ("text/javascript; charset=utf-8", script().to_owned()),
        "icon-well.svg" => (SVG, icon("#1f8a52", "M9 16.5l4.5 4.5L23 11.5")),
        "icon-waits.svg" => (SVG, icon("#b26a00", "M16 9v8.5M16 22v.5")),
        "icon-held.svg" => (SVG, icon("#6b7280", "M12.5 10.5v11M19.5 10.5v11")),
        "icon-trouble.svg" => (SVG, icon("#c0362c", "M11 11l10 10M21 11L11 21")),
        _ => return None,
    })
}

/// Returns the icon of the browser tab: colour and sign show the level.
fn icon(colour: &str, sign: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><circle cx=\"16\" cy=\"16\" r=\"15\" fill=\"{colour}\"/><path d=\"{sign}\" fill=\"none\" stroke=\"#fff\" stroke-width=\"3.4\" stroke-linecap=\"round\" stroke-linejoin=\"round\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns the colours of one scheme, by name.
    fn colours(block: &str) -> BTreeMap<&str, (f64, f64, f64)> {
        let of = |hex: &str| {
            let part = |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            (part(0), part(2), part(4))
        };
        block
            .split(';')
            .filter_map(|line| line.trim().strip_prefix("--")?.split_once(':'))
            .filter_map(|(name, value)| Some((name, value.trim().strip_prefix('#').filter(|hex| hex.len() == 6)?)))
            .map(|(name, hex)| (name, of(hex)))
            .collect()
    }

    /// Returns the relative luminance by the definition of WCAG.
    fn luminance((r, g, b): (f64, f64, f64)) -> f64 {
        let part = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
    }

    fn contrast(one: (f64, f64, f64), other: (f64, f64, f64)) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_can_be_read_in_light_and_in_dark() {
        let blocks: Vec<&str> = style().split(":root{").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        assert_eq!(blocks.len(), 2, "one scheme for light, one for dark");
        for block in blocks {
            let colours = colours(block);
            for text in ["text", "soft", "link", "well", "waits", "held", "trouble", "work", "check", "land"] {
                for ground in ["ground", "panel", "sunk"] {
                    let found = contrast(colours[text], colours[ground]);
                    assert!(found >= 4.5, "{text} on {ground}: {found:.2}");
                }
            }
            for (text, ground) in
                [("on-accent", "accent"), ("on-danger", "danger"), ("text", "added"), ("text", "removed")]
            {
                let found = contrast(colours[text], colours[ground]);
                assert!(found >= 4.5, "{text} on {ground}: {found:.2}");
            }
            let ring = contrast(colours["focus"], colours["panel"]);
            assert!(ring >= 3.0, "the ring around what has the focus: {ring:.2}");
        }
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for (name, text) in [("style", style()), ("script", script())] {
            for bad in ["http:", "https:", "//cdn", "@import", "url("] {
                assert!(!text.contains(bad), "{name} holds {bad}");
            }
        }
        for unsafe_call in ["innerHTML", "outerHTML =", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!script().contains(unsafe_call), "the script calls {unsafe_call}");
        }
    }

    #[test]
    fn the_icons_are_there_for_every_level() {
        use super::super::health::HealthLevel;
        for level in [HealthLevel::Well, HealthLevel::Waits, HealthLevel::Held, HealthLevel::Trouble] {
            let name = serde_json::to_value(level).unwrap();
            assert!(file(&format!("icon-{}.svg", name.as_str().unwrap())).is_some());
        }
        assert!(file("../../etc/passwd").is_none());
    }
}
