//! Projects (the new kind) with a status column.

use jiff::Timestamp;

#[derive(Clone, Debug)]
pub struct Project {
    pub id: u64,
    pub owner: String,
    pub number: u64,
    pub title: String,
    pub field_id: u64,
    pub field: String,
    pub options: Vec<(String, String)>,
    pub items: Vec<Item>,
    pub created_at: Timestamp,
}

/// An issue or a pull request in a project.
#[derive(Clone, Debug)]
pub struct Item {
    pub id: u64,
    pub repository: u64,
    pub number: u64,
    /// The id of the option that it stands in.
    pub option: Option<String>,
    pub moved_by: Option<String>,
    pub moved_at: Timestamp,
    pub created_at: Timestamp,
}

impl Project {
    pub fn option_named(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(_, option)| option == name).map(|(id, _)| id.as_str())
    }

    pub fn option_name(&self, id: &str) -> Option<&str> {
        self.options.iter().find(|(option, _)| option == id).map(|(_, name)| name.as_str())
    }
}
