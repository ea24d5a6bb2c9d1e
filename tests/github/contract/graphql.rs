//! GraphQL documents and variables held against GitHub's schema, and what a query costs.

use std::sync::LazyLock;

use apollo_compiler::executable::{Operation, Selection, SelectionSet};
use apollo_compiler::request::coerce_variable_values;
use apollo_compiler::response::{JsonMap, JsonValue};
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::Value;

const TEXT: &str = include_str!("../../contracts/github.graphql");

static SCHEMA: LazyLock<Valid<Schema>> =
    LazyLock::new(|| Schema::parse_and_validate(TEXT, "github.graphql").unwrap_or_else(|wrong| panic!("{wrong}")));

pub fn schema() -> &'static Valid<Schema> {
    &SCHEMA
}

/// A document that is valid, with variables that fit it.
pub struct Question {
    pub document: Valid<ExecutableDocument>,
    pub operation_name: Option<String>,
    pub variables: Valid<JsonMap>,
}

impl Question {
    /// Reads the body of a request to `/graphql`; an error says what is wrong with it.
    pub fn read(body: &Value) -> Result<Self, String> {
        for key in body.as_object().ok_or("body: not an object")?.keys() {
            if !["query", "variables", "operationName"].contains(&key.as_str()) {
                return Err(format!("body /{key}: GraphQL over HTTP has no such field"));
            }
        }
        let text = body["query"].as_str().ok_or("body /query: missing")?;
        let document = ExecutableDocument::parse_and_validate(schema(), text, "request.graphql")
            .map_err(|wrong| format!("document: {}", wrong.errors))?;
        let operation_name = body["operationName"].as_str().map(str::to_owned);
        let given = match &body["variables"] {
            Value::Null => JsonMap::new(),
            Value::Object(_) => JsonValue::from(body["variables"].clone()).as_object().cloned().unwrap_or_default(),
            _ => return Err("body /variables: not an object".to_owned()),
        };
        let operation = document.operations.get(operation_name.as_deref()).map_err(|e| e.message().to_string())?;
        for name in given.keys() {
            if !operation.variables.iter().any(|variable| variable.name.as_str() == name.as_str()) {
                return Err(format!("variable ${}: the document does not declare it", name.as_str()));
            }
        }
        let variables =
            coerce_variable_values(schema(), operation, &given).map_err(|e| format!("variables: {}", e.message()))?;
        Ok(Self { document, operation_name, variables })
    }

    pub fn operation(&self) -> &Operation {
        self.document.operations.get(self.operation_name.as_deref()).unwrap()
    }

    pub fn is_mutation(&self) -> bool {
        self.operation().is_mutation()
    }

    /// The name under which the request is counted: `graphql/` and the root fields, each once.
    pub fn route(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for field in self.operation().root_fields(&self.document) {
            if !names.contains(&field.name.to_string()) {
                names.push(field.name.to_string());
            }
        }
        format!("graphql/{}", names.join("+"))
    }

    /// What GitHub charges: one request per connection that has to be fetched, divided by 100, at least 1.
    pub fn cost(&self) -> u64 {
        let requests = self.fetches(&self.operation().selection_set, 1);
        requests.div_ceil(100).max(1)
    }

    fn fetches(&self, set: &SelectionSet, times: u64) -> u64 {
        let mut sum = 0;
        for selection in &set.selections {
            sum += match selection {
                Selection::Field(field) => match self.size(field) {
                    Some(size) => times + self.fetches(&field.selection_set, times * size),
                    None => self.fetches(&field.selection_set, times),
                },
                Selection::InlineFragment(fragment) => self.fetches(&fragment.selection_set, times),
                Selection::FragmentSpread(spread) => match self.document.fragments.get(&spread.fragment_name) {
                    Some(fragment) => self.fetches(&fragment.selection_set, times),
                    None => 0,
                },
            };
        }
        sum
    }

    /// `first` or `last` of a connection.
    fn size(&self, field: &apollo_compiler::executable::Field) -> Option<u64> {
        let argument = field.arguments.iter().find(|argument| ["first", "last"].contains(&argument.name.as_str()))?;
        if let Some(variable) = argument.value.as_variable() {
            return self.variables.get(variable.as_str())?.as_u64();
        }
        argument.value.to_i32().map(|size| size.unsigned_abs().into())
    }
}
