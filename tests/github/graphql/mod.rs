//! GraphQL: documents are executed field by field against the world, as the specification says, so that any valid document gets an answer.

mod account;
mod checks;
mod issue;
mod lookup;
mod mutation;
mod node;
mod project;
mod pull;
mod query;
mod review;

use std::cell::RefCell;

use apollo_compiler::resolvers::Execution;
use serde_json::{Value, json};

use super::contract::graphql::{Question, schema};
use super::server::caller::Caller;
use super::server::exchange::Answer;
use super::state::{TokenKind, World};

use node::{Kind, Node};

/// What the resolvers share while one document is executed.
pub struct Context<'w> {
    pub world: RefCell<&'w mut World>,
    pub caller: Caller,
    pub login: String,
    pub cost: u64,
    /// What the document asks for and this fake does not know.
    pub unknown: RefCell<Vec<String>>,
}

impl Context<'_> {
    /// Fine-grained tokens cannot read check runs.
    pub fn is_fine_grained(&self) -> bool {
        matches!(&self.caller, Caller::Token(token) if token.kind == TokenKind::FineGrained)
    }
}

pub fn answer(world: &mut World, question: &Question, caller: &Caller) -> Answer {
    let (cost, login) = (question.cost(), caller.login());
    let context =
        Context { world: RefCell::new(world), caller: caller.clone(), login, cost, unknown: RefCell::default() };
    let kind = if question.is_mutation() { Kind::Mutation } else { Kind::Query };
    let root = Node { context: &context, kind };
    let execution = Execution::new(schema(), &question.document)
        .operation(question.operation())
        .coerced_variable_values(&question.variables);
    let executed = execution.execute_sync(&root);
    let unknown = context.unknown.take();
    for words in &unknown {
        context.world.borrow_mut().violate(format!("{}: {words}", question.route()));
    }
    if !unknown.is_empty() {
        return Answer::general(500, &unknown.join("; "));
    }
    match executed {
        Ok(response) => {
            let mut body = json!({"data": serde_json::to_value(&response.data).unwrap()});
            let errors: Vec<Value> =
                response.errors.iter().map(|error| typed(serde_json::to_value(error).unwrap())).collect();
            if !errors.is_empty() {
                body["errors"] = json!(errors);
            }
            Answer::json(200, body)
        }
        Err(wrong) => Answer::general(500, &wrong.message().to_string()),
    }
}

/// GitHub gives its errors a type. The resolvers put it before the words.
fn typed(mut error: Value) -> Value {
    let words = error["message"].as_str().unwrap_or_default();
    let words = words.strip_prefix("resolver error: ").unwrap_or(words).to_owned();
    if let Some((kind, words)) = words.split_once(": ")
        && kind.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    {
        error["type"] = json!(kind);
        error["message"] = json!(words);
    }
    error
}
