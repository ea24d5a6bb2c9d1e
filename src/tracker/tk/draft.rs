//! Renders a new ticket file, in the byte layout that every reader of the format expects.

/// The content of a new ticket. Empty optional fields are left out of the file.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub title: String,
    pub status: String,
    pub deps: Vec<String>,
    pub created: String,
    pub kind: String,
    pub priority: String,
    pub assignee: String,
    pub external_ref: String,
    pub parent: String,
    /// The text between the brackets of the list.
    pub tags: String,
    /// Additional `key: value` lines.
    pub extra: Vec<(&'static str, String)>,
    pub description: String,
    pub design: String,
    pub acceptance: String,
}

impl Draft {
    pub fn new(title: impl Into<String>, created: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            created: created.into(),
            status: "open".into(),
            kind: "task".into(),
            priority: "2".into(),
            ..Self::default()
        }
    }

    /// Renders the ticket file for this id.
    pub fn render(&self, id: &str) -> String {
        let mut text = format!(
            "---\nid: {id}\nstatus: {}\ndeps: [{}]\nlinks: []\ncreated: {}\ntype: {}\npriority: {}\n",
            self.status,
            self.deps.join(", "),
            self.created,
            self.kind,
            self.priority
        );
        let mut optional = |key: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("{key}: {value}\n"));
            }
        };
        optional("assignee", &self.assignee);
        optional("external-ref", &self.external_ref);
        optional("parent", &self.parent);
        if !self.tags.is_empty() {
            optional("tags", &format!("[{}]", self.tags));
        }
        for (key, value) in &self.extra {
            optional(key, value);
        }
        text.push_str(&format!("---\n# {}\n\n", self.title));
        for (heading, section) in
            [("", &self.description), ("## Design\n\n", &self.design), ("## Acceptance Criteria\n\n", &self.acceptance)]
        {
            if !section.is_empty() {
                text.push_str(&format!("{heading}{section}\n\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_byte_for_byte_the_formats() {
        let mut draft = Draft::new("Title text", "2026-11-16T01:01:32Z");
        assert_eq!(
            draft.render("mcp-ntr5"),
            "---\nid: mcp-ntr5\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-11-16T01:01:32Z\ntype: task\npriority: 2\n---\n# Title text\n\n"
        );
        draft.kind = "bug".into();
        draft.priority = "0".into();
        draft.assignee = "Al Ice".into();
        draft.external_ref = "gh-1".into();
        draft.parent = "mcp-04sf".into();
        draft.tags = "a, b".into();
        draft.description = "why".into();
        draft.design = "how".into();
        draft.acceptance = "when".into();
        assert_eq!(
            draft.render("mcp-ntr5"),
            "---\nid: mcp-ntr5\nstatus: open\ndeps: []\nlinks: []\ncreated: 2026-11-16T01:01:32Z\ntype: bug\npriority: 0\nassignee: Al Ice\nexternal-ref: gh-1\nparent: mcp-04sf\ntags: [a, b]\n---\n# Title text\n\nwhy\n\n## Design\n\nhow\n\n## Acceptance Criteria\n\nwhen\n\n"
        );
    }
}
