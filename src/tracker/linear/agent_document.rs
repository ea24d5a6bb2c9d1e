//! Parses an agent's GraphQL document, and determines what it would do and what is sent instead. The runner sends a document that
//! it prints from the parsed form, with its own arguments for a write.

use std::collections::BTreeSet;

use graphql_parser::query::{
    Definition, Document, Field, FragmentDefinition, Mutation, OperationDefinition, Selection, SelectionSet, Type,
    Value as Literal, VariableDefinition,
};
use serde_json::{Map, Value, json};

use super::agent_reading::{readable, refuse_hidden};

const WRITABLE: &str = "may be written, on the run's own ticket: issueUpdate(input: {stateId}), commentCreate, commentUpdate of a \
                        worker's own comment, attachmentCreate, fileUpload";
const LONGEST_FILE: i64 = 50 << 20;
/// The prefix of the names of the runner's own variables.
const OURS: &str = "dirigent";

type Text = String;
type Ast = Document<'static, Text>;

/// A parsed and checked document.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDocument {
    pub deed: Deed,
    ast: Ast,
    variables: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    Read,
    Write(AgentWrite),
}

/// The single action of a mutation. Ids are as the agent gave them.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentWrite {
    Move { issue: String, state: String },
    Comment { issue: String, body: String },
    Reword { comment: String, body: String },
    Attach { issue: String, url: String, title: String, subtitle: Option<String> },
    Upload { content_type: String, filename: String, size: i64 },
}

/// A document as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sendable {
    pub query: String,
    pub variables: Map<String, Value>,
}

impl AgentDocument {
    /// Parses and checks a request: `{query, variables}`, or the query alone. The error is a sentence for the agent.
    pub fn read(request: &Value) -> Result<Self, String> {
        let (query, variables) = parts(request)?;
        let ast = graphql_parser::parse_query::<Text>(query)
            .map_err(|error| format!("not a GraphQL document: {}", one_line(&error.to_string())))?
            .into_static();
        let mut operations = ast.definitions.iter().filter_map(|definition| match definition {
            Definition::Operation(operation) => Some(operation),
            Definition::Fragment(_) => None,
        });
        let Some(operation) = operations.next() else { return Err("the document has no operation".to_owned()) };
        if operations.next().is_some() {
            return Err("the document has several operations; send one per request".to_owned());
        }
        let fragments = fragments(&ast);
        for selection in all_selections(&ast) {
            refuse_hidden(selection)?;
        }
        let deed = match operation {
            OperationDefinition::SelectionSet(selection) => readable(selection, &fragments).map(|()| Deed::Read)?,
            OperationDefinition::Query(query) => readable(&query.selection_set, &fragments).map(|()| Deed::Read)?,
            OperationDefinition::Subscription(_) => return Err("a subscription cannot be asked for here".to_owned()),
            OperationDefinition::Mutation(mutation) => {
                let field = only_field(mutation)?;
                let defaults = defaults(mutation);
                Deed::Write(AgentWrite::of(field, &Scope { given: &variables, defaults: &defaults })?)
            }
        };
        Ok(Self { deed, ast, variables })
    }

    /// Returns the document of a read.
    pub fn as_read(&self) -> Sendable {
        Sendable { query: self.ast.to_string(), variables: self.variables.clone() }
    }

    /// Returns the document of a write with these arguments (name, type, value) in place of the agent's.
    pub fn with_arguments(&self, arguments: &[(&str, &str, Value)]) -> Sendable {
        let mut ast = self.ast.clone();
        let in_fragments: BTreeSet<String> =
            fragments(&ast).iter().flat_map(|fragment| used_variables(&fragment.selection_set)).collect();
        let mut variables = Map::new();
        for definition in &mut ast.definitions {
            let Definition::Operation(OperationDefinition::Mutation(mutation)) = definition else { continue };
            let Some(Selection::Field(field)) = mutation.selection_set.items.first_mut() else { continue };
            let mut used = used_variables(&field.selection_set);
            used.extend(in_fragments.iter().cloned());
            mutation.variable_definitions.retain(|known| used.contains(&known.name));
            variables.extend(
                self.variables
                    .iter()
                    .filter(|(name, _)| used.contains(*name))
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
            field.arguments.clear();
            for (name, kind, value) in arguments {
                let variable = format!("{OURS}_{name}");
                field.arguments.push(((*name).to_owned(), Literal::Variable(variable.clone())));
                mutation.variable_definitions.push(VariableDefinition {
                    position: mutation.position,
                    name: variable.clone(),
                    var_type: Type::NonNullType(Box::new(Type::NamedType((*kind).to_owned()))),
                    default_value: None,
                });
                variables.insert(variable, value.clone());
            }
        }
        Sendable { query: ast.to_string(), variables }
    }
}

impl AgentWrite {
    fn of(field: &Field<'static, Text>, scope: &Scope<'_>) -> Result<Self, String> {
        let arguments = Arguments::of(field, scope)?;
        match field.name.as_str() {
            "issueUpdate" => {
                arguments.only(&["id", "input"])?;
                let input = arguments.input(&["stateId"])?;
                Ok(Self::Move { issue: arguments.text("id")?, state: input.text("stateId")? })
            }
            "commentCreate" => {
                arguments.only(&["input"])?;
                let input = arguments.input(&["issueId", "body"])?;
                Ok(Self::Comment { issue: input.text("issueId")?, body: input.text("body")? })
            }
            "commentUpdate" => {
                arguments.only(&["id", "input"])?;
                let input = arguments.input(&["body"])?;
                Ok(Self::Reword { comment: arguments.text("id")?, body: input.text("body")? })
            }
            "attachmentCreate" => {
                arguments.only(&["input"])?;
                let input = arguments.input(&["issueId", "url", "title", "subtitle"])?;
                let subtitle = input.values.contains_key("subtitle").then(|| input.text("subtitle")).transpose()?;
                let (issue, url, title) = (input.text("issueId")?, input.text("url")?, input.text("title")?);
                Ok(Self::Attach { issue, url, title, subtitle })
            }
            "fileUpload" => {
                // `makePublic` is not allowed: everyone could read such a file.
                arguments.only(&["contentType", "filename", "size"])?;
                let size = arguments.values.get("size").and_then(Value::as_i64).unwrap_or(-1);
                if !(0..=LONGEST_FILE).contains(&size) {
                    return Err(format!("fileUpload: `size` has to be a number of bytes up to {LONGEST_FILE}"));
                }
                let (content_type, filename) = (arguments.text("contentType")?, arguments.text("filename")?);
                Ok(Self::Upload { content_type, filename, size })
            }
            name => Err(format!("{name} is not allowed; {WRITABLE}")),
        }
    }
}

/// The arguments of a field, or an object among them, with the variables replaced by their values.
struct Arguments {
    field: String,
    values: Map<String, Value>,
}

impl Arguments {
    fn of(field: &Field<'static, Text>, scope: &Scope<'_>) -> Result<Self, String> {
        let mut values = Map::new();
        for (name, literal) in &field.arguments {
            if let Some(value) = scope.value(literal)? {
                values.insert(name.clone(), value);
            }
        }
        Ok(Self { field: field.name.clone(), values })
    }

    fn only(&self, allowed: &[&str]) -> Result<(), String> {
        match self.values.keys().find(|name| !allowed.contains(&name.as_str())) {
            Some(other) => {
                Err(format!("{}: `{other}` may not be set, only {}; {WRITABLE}", self.field, allowed.join(", ")))
            }
            None => Ok(()),
        }
    }

    fn input(&self, allowed: &[&str]) -> Result<Self, String> {
        let Some(Value::Object(values)) = self.values.get("input") else {
            return Err(format!("{}: `input` has to be an object with {}", self.field, allowed.join(", ")));
        };
        let input = Self { field: format!("{}(input)", self.field), values: values.clone() };
        input.only(allowed)?;
        Ok(input)
    }

    fn text(&self, name: &str) -> Result<String, String> {
        match self.values.get(name).and_then(Value::as_str).map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(format!("{}: `{name}` has to be a text that is not empty", self.field)),
        }
    }
}

/// The values of variables.
struct Scope<'a> {
    given: &'a Map<String, Value>,
    defaults: &'a Map<String, Value>,
}

impl Scope<'_> {
    /// Evaluates a literal. `None` for an optional variable without a value.
    fn value(&self, literal: &Literal<'static, Text>) -> Result<Option<Value>, String> {
        Ok(Some(match literal {
            Literal::Variable(name) => {
                return Ok(self.given.get(name).or_else(|| self.defaults.get(name)).cloned());
            }
            Literal::Int(number) => json!(number.as_i64()),
            Literal::Float(number) => json!(number),
            Literal::String(text) => json!(text),
            Literal::Boolean(value) => json!(value),
            Literal::Null => Value::Null,
            Literal::Enum(name) => json!(name),
            Literal::List(items) => {
                let items: Result<Vec<_>, String> = items.iter().map(|item| self.value(item)).collect();
                Value::Array(items?.into_iter().flatten().collect())
            }
            Literal::Object(fields) => {
                let mut object = Map::new();
                for (name, literal) in fields {
                    if let Some(value) = self.value(literal)? {
                        object.insert(name.clone(), value);
                    }
                }
                Value::Object(object)
            }
        }))
    }
}

fn parts(request: &Value) -> Result<(&str, Map<String, Value>), String> {
    const SHAPE: &str = "send {\"query\": a GraphQL document, \"variables\": an object}";
    let (query, variables) = match request {
        Value::String(query) => (query.as_str(), None),
        Value::Object(fields) => {
            if let Some(other) = fields.keys().find(|name| !["query", "variables"].contains(&name.as_str())) {
                return Err(format!("`{other}` is not understood; {SHAPE}"));
            }
            let Some(query) = fields.get("query").and_then(Value::as_str) else {
                return Err(format!("there is no `query`; {SHAPE}"));
            };
            (query, fields.get("variables"))
        }
        _ => return Err(SHAPE.to_owned()),
    };
    let variables = match variables {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(variables)) => variables.clone(),
        Some(_) => return Err(format!("`variables` is not an object; {SHAPE}")),
    };
    if let Some(name) = variables.keys().find(|name| name.starts_with(OURS)) {
        return Err(format!("`${name}`: names that begin with `{OURS}` are taken"));
    }
    match query.trim() {
        "" => Err(format!("the query is empty; {SHAPE}")),
        query => Ok((query, variables)),
    }
}

fn fragments(ast: &Ast) -> Vec<FragmentDefinition<'static, Text>> {
    let found = ast.definitions.iter().filter_map(|definition| match definition {
        Definition::Fragment(fragment) => Some(fragment.clone()),
        Definition::Operation(_) => None,
    });
    found.collect()
}

fn all_selections(ast: &Ast) -> impl Iterator<Item = &SelectionSet<'static, Text>> {
    ast.definitions.iter().map(|definition| match definition {
        Definition::Fragment(fragment) => &fragment.selection_set,
        Definition::Operation(OperationDefinition::SelectionSet(selection)) => selection,
        Definition::Operation(OperationDefinition::Query(query)) => &query.selection_set,
        Definition::Operation(OperationDefinition::Mutation(mutation)) => &mutation.selection_set,
        Definition::Operation(OperationDefinition::Subscription(subscription)) => &subscription.selection_set,
    })
}

fn only_field<'a>(mutation: &'a Mutation<'static, Text>) -> Result<&'a Field<'static, Text>, String> {
    match mutation.selection_set.items.as_slice() {
        [Selection::Field(field)] if field.directives.is_empty() => Ok(field),
        [Selection::Field(_)] => Err("a mutation has no directive here; send it or leave it".to_owned()),
        [_] => Err("a mutation cannot come out of a fragment; write it out".to_owned()),
        several => Err(format!("the document has {} mutations; send one per request", several.len())),
    }
}

fn defaults(mutation: &Mutation<'static, Text>) -> Map<String, Value> {
    let nothing = Map::new();
    let scope = Scope { given: &nothing, defaults: &nothing };
    let with_default = mutation.variable_definitions.iter().filter_map(|known| {
        let value = scope.value(known.default_value.as_ref()?).ok()??;
        Some((known.name.clone(), value))
    });
    with_default.collect()
}

/// Returns the variables that a selection uses, in arguments and directives.
fn used_variables(selection: &SelectionSet<'static, Text>) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for item in &selection.items {
        let (arguments, directives, inner) = match item {
            Selection::Field(field) => (field.arguments.as_slice(), &field.directives, Some(&field.selection_set)),
            Selection::InlineFragment(inline) => (&[][..], &inline.directives, Some(&inline.selection_set)),
            Selection::FragmentSpread(spread) => (&[][..], &spread.directives, None),
        };
        let in_directives = directives.iter().flat_map(|directive| &directive.arguments);
        for (_, literal) in arguments.iter().chain(in_directives) {
            name_variables(literal, &mut used);
        }
        used.extend(inner.map(used_variables).unwrap_or_default());
    }
    used
}

fn name_variables(literal: &Literal<'static, Text>, used: &mut BTreeSet<String>) {
    match literal {
        Literal::Variable(name) => {
            used.insert(name.clone());
        }
        Literal::List(items) => items.iter().for_each(|item| name_variables(item, used)),
        Literal::Object(fields) => fields.values().for_each(|field| name_variables(field, used)),
        _ => {}
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(query: &str) -> Result<Deed, String> {
        AgentDocument::read(&json!({ "query": query })).map(|document| document.deed)
    }

    fn refusal(query: &str) -> String {
        understood(query).expect_err(query)
    }

    #[test]
    fn one_mutation_with_nothing_but_what_is_allowed() {
        let moves = understood("mutation { x: issueUpdate(id: \"ENG-1\", input: {stateId: \"s\"}) { success } }");
        assert_eq!(moves, Ok(Deed::Write(AgentWrite::Move { issue: "ENG-1".into(), state: "s".into() })));
        for (query, says) in [
            (
                "mutation { issueUpdate(id: \"1\", input: {stateId: \"s\", title: \"t\"}) { success } }",
                "`title` may not be set",
            ),
            ("mutation { issueUpdate(id: \"1\", input: {}) { success } }", "`stateId` has to be"),
            ("mutation { issueDelete(id: \"1\") { success } }", "issueDelete is not allowed; may be written"),
            (
                "mutation { a: commentCreate(input: {issueId: \"1\", body: \"x\"}) { success } b: issueDelete(id: \"1\") { success } }",
                "2 mutations",
            ),
            ("mutation { ...F } fragment F on Mutation { issueDelete(id: \"1\") { success } }", "out of a fragment"),
            ("mutation { ... on Mutation { issueDelete(id: \"1\") { success } } }", "out of a fragment"),
            (
                "mutation { commentCreate(input: {issueId: \"1\", body: \"x\", createAsUser: \"boss\"}) { success } }",
                "`createAsUser`",
            ),
            (
                "mutation { fileUpload(contentType: \"a/b\", filename: \"f\", size: 3, makePublic: true) { success } }",
                "`makePublic`",
            ),
            ("mutation { fileUpload(contentType: \"a/b\", filename: \"f\", size: 99999999999) { success } }", "`size`"),
            (
                "mutation { commentCreate(input: {issueId: \"1\", body: \"x\"}) @skip(if: true) { success } }",
                "directive",
            ),
        ] {
            let refused = refusal(query);
            assert!(refused.contains(says), "{query}: {refused}");
        }
    }

    #[test]
    fn a_write_is_sent_with_our_arguments_and_the_agents_selection() {
        let request = json!({
            "query": "mutation M($i: CommentCreateInput!, $n: Int = 2, $no: String) { c: commentCreate(input: $i) { success comment { ...F } } } fragment F on Comment { issue { comments(first: $n) { nodes { id } } } }",
            "variables": {"i": {"issueId": "1", "body": "hello"}, "n": 3},
        });
        let document = AgentDocument::read(&request).unwrap();
        assert_eq!(document.deed, Deed::Write(AgentWrite::Comment { issue: "1".into(), body: "hello".into() }));
        let sent = document.with_arguments(&[("input", "CommentCreateInput", json!({"body": "ours"}))]);
        assert!(sent.query.contains("commentCreate(input: $dirigent_input)"), "{}", sent.query);
        assert!(
            sent.query.contains("$dirigent_input: CommentCreateInput!") && !sent.query.contains("$no"),
            "{}",
            sent.query
        );
        assert_eq!(Value::Object(sent.variables), json!({"dirigent_input": {"body": "ours"}, "n": 3}));
    }
}
