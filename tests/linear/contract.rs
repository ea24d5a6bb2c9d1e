//! Documents and variables held against Linear's schema, and what a document costs.

use std::sync::LazyLock;

use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};
use apollo_compiler::request::coerce_variable_values;
use apollo_compiler::response::{JsonMap, JsonValue};
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::Value;

const TEXT: &str = include_str!("../contracts/linear.graphql");
/// Linear refuses a single query above 10,000; ours stay below half of that.
pub const MOST_COMPLEX: u64 = 5_000;

static SCHEMA: LazyLock<Valid<Schema>> =
    LazyLock::new(|| Schema::parse_and_validate(TEXT, "linear.graphql").unwrap_or_else(|wrong| panic!("{wrong}")));

pub fn schema() -> &'static Valid<Schema> {
    &SCHEMA
}

/// A document that is valid, with variables that fit it.
pub struct Question {
    pub document: Valid<ExecutableDocument>,
    /// The operation's own name; agents need not give it one.
    pub name: String,
    pub variables: Valid<JsonMap>,
}

impl Question {
    /// Reads the body of a request; an error says what is wrong with it.
    pub fn read(body: &Value) -> Result<Self, String> {
        for key in body.as_object().ok_or("body: not an object")?.keys() {
            if !["query", "variables", "operationName"].contains(&key.as_str()) {
                return Err(format!("body /{key}: GraphQL over HTTP has no such field"));
            }
        }
        let text = body["query"].as_str().ok_or("body /query: missing")?;
        let document = ExecutableDocument::parse_and_validate(schema(), text, "request.graphql")
            .map_err(|wrong| format!("document: {}", wrong.errors))?;
        let name = body["operationName"].as_str();
        let given = match &body["variables"] {
            Value::Null => JsonMap::new(),
            Value::Object(_) => JsonValue::from(body["variables"].clone()).as_object().cloned().unwrap_or_default(),
            _ => return Err("body /variables: not an object".to_owned()),
        };
        let operation = document.operations.get(name).map_err(|e| e.message().to_string())?;
        let name = operation.name.as_ref().map_or_else(String::new, ToString::to_string);
        for name in given.keys() {
            if !operation.variables.iter().any(|variable| variable.name.as_str() == name.as_str()) {
                return Err(format!("variable ${}: the document does not declare it", name.as_str()));
            }
        }
        let variables =
            coerce_variable_values(schema(), operation, &given).map_err(|e| format!("variables: {}", e.message()))?;
        let question = Self { document, name, variables };
        match question.complexity() {
            cost if cost > MOST_COMPLEX => Err(format!("the document costs {cost}, more than {MOST_COMPLEX}")),
            _ => Ok(question),
        }
    }

    pub fn operation(&self) -> &Operation {
        self.document.operations.get(Some(self.name.as_str()).filter(|name| !name.is_empty())).unwrap()
    }

    pub fn is_mutation(&self) -> bool {
        self.operation().is_mutation()
    }

    /// As Linear publishes it: a scalar is a tenth, an object is one, a connection multiplies what is in it by its size, or by 50. Whether
    /// `pageInfo` is multiplied as well is not said; here it is.
    pub fn complexity(&self) -> u64 {
        self.cost(&self.operation().selection_set).div_ceil(10)
    }

    fn cost(&self, set: &SelectionSet) -> u64 {
        let mut tenths = 0;
        for selection in &set.selections {
            tenths += match selection {
                Selection::Field(field) if field.selection_set.selections.is_empty() => 1,
                Selection::Field(field) => 10 + self.size(field) * self.cost(&field.selection_set),
                Selection::InlineFragment(fragment) => self.cost(&fragment.selection_set),
                Selection::FragmentSpread(spread) => {
                    self.document.fragments.get(&spread.fragment_name).map_or(0, |one| self.cost(&one.selection_set))
                }
            };
        }
        tenths
    }

    fn size(&self, field: &Field) -> u64 {
        if !field.ty().inner_named_type().ends_with("Connection") {
            return 1;
        }
        let argument = field.arguments.iter().find(|argument| ["first", "last"].contains(&argument.name.as_str()));
        let written = argument.and_then(|argument| match argument.value.as_variable() {
            Some(variable) => self.variables.get(variable.as_str())?.as_u64(),
            None => argument.value.to_i32().map(|size| size.unsigned_abs().into()),
        });
        written.unwrap_or(50)
    }
}
