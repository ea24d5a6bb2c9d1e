//! `config`: prints the effective values with their sources, or the schema of the workflow file.

use serde_json::json;

use crate::workflow::{schema, show};

use super::Failure;
use super::args::{ConfigArgs, ConfigCommand};
use super::context::Context;
use super::output;

pub fn config(context: &Context, args: &ConfigArgs) -> Result<(), Failure> {
    match &args.command {
        ConfigCommand::Schema => output::print(schema::json_schema_text().trim_end()),
        ConfigCommand::Show { json: true } => {
            let loaded = context.load(None)?;
            let values: Vec<_> = loaded
                .values
                .iter()
                .map(|value| {
                    json!({
                        "path": value.path,
                        "value": value.value,
                        "source": value.source.to_string(),
                        "not_in_force": value.not_in_force,
                    })
                })
                .collect();
            // Warnings go to stderr: stdout holds the JSON document, which a program reads.
            for warning in &loaded.warnings {
                output::complain(&format!("warning: {warning}"));
            }
            output::print_json(&values)
        }
        ConfigCommand::Show { json: false } => {
            let loaded = context.load(None)?;
            let mut text = show::plain_text(&loaded.values);
            for warning in &loaded.warnings {
                text.push_str(&format!("\nwarning: {warning}"));
            }
            output::print(text.trim_end())
        }
    }
}
