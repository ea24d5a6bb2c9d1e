//! GraphQL answers held against the document that was asked and the schema.
//!
//! The executor already makes answers of the right shape. This reads them without trusting it, so that a change on the way out, or a
//! value of a custom scalar that is not one, is found.

use apollo_compiler::ast::Type;
use apollo_compiler::executable::{Field, Selection, SelectionSet};
use apollo_compiler::schema::ExtendedType;
use serde_json::Value;

use super::graphql::{Question, schema};

/// What is wrong with the `data` of an answer; empty if nothing is.
pub fn check_data(question: &Question, data: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let operation = question.operation();
    Reader { question }.object(operation.object_type(), &[&operation.selection_set], data, "data", &mut wrong);
    wrong
}

struct Reader<'a> {
    question: &'a Question,
}

impl<'a> Reader<'a> {
    fn object(&self, ty: &str, sets: &[&'a SelectionSet], value: &Value, at: &str, wrong: &mut Vec<String>) {
        let Some(given) = value.as_object() else {
            wrong.push(format!("{at}: {value} is not an object"));
            return;
        };
        if schema().get_object(ty).is_none() {
            return self.abstract_object(ty, sets, value, at, wrong);
        }
        let mut fields = Vec::new();
        for set in sets {
            self.collect(ty, set, false, &mut fields);
        }
        for key in given.keys() {
            if !fields.iter().any(|(field, _)| field.response_key().as_str() == key) {
                wrong.push(format!("{at}/{key}: was not asked for"));
            }
        }
        let mut done: Vec<&str> = Vec::new();
        for (field, optional) in &fields {
            let key = field.response_key().as_str();
            if done.contains(&key) {
                continue;
            }
            done.push(key);
            let same = fields.iter().filter(|(other, _)| other.response_key().as_str() == key);
            let sets: Vec<&SelectionSet> = same.map(|(other, _)| &other.selection_set).collect();
            match given.get(key) {
                Some(value) if field.name == "__typename" => {
                    if value != ty {
                        wrong.push(format!("{at}/{key}: {value} is not {ty}"));
                    }
                }
                Some(value) => self.value(&field.definition.ty, &sets, value, &format!("{at}/{key}"), wrong),
                None if *optional => {}
                None => wrong.push(format!("{at}/{key}: is missing")),
            }
        }
    }

    /// An interface or a union: right if it is right for one of the types that it can be.
    fn abstract_object(&self, ty: &str, sets: &[&'a SelectionSet], value: &Value, at: &str, wrong: &mut Vec<String>) {
        let named = value["__typename"].as_str();
        let mut reasons = None;
        for candidate in schema().types.keys().filter(|name| schema().is_subtype(ty, name)) {
            if schema().get_object(candidate).is_none() || named.is_some_and(|named| named != candidate.as_str()) {
                continue;
            }
            let mut found = Vec::new();
            self.object(candidate, sets, value, at, &mut found);
            if found.is_empty() {
                return;
            }
            reasons.get_or_insert(found);
        }
        wrong.extend(reasons.unwrap_or_else(|| vec![format!("{at}: {named:?} is not a {ty}")]));
    }

    fn collect(&self, ty: &str, set: &'a SelectionSet, optional: bool, fields: &mut Vec<(&'a Field, bool)>) {
        let applies = |condition: &str| condition == ty || schema().is_subtype(condition, ty);
        for selection in &set.selections {
            let directives = selection.directives();
            let optional = optional || directives.has("skip") || directives.has("include");
            match selection {
                Selection::Field(field) => fields.push((field, optional)),
                Selection::InlineFragment(fragment) => {
                    if fragment.type_condition.as_ref().is_none_or(|condition| applies(condition)) {
                        self.collect(ty, &fragment.selection_set, optional, fields);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let fragment = self.question.document.fragments.get(&spread.fragment_name);
                    if let Some(fragment) = fragment.filter(|fragment| applies(fragment.type_condition())) {
                        self.collect(ty, &fragment.selection_set, optional, fields);
                    }
                }
            }
        }
    }

    fn value(&self, ty: &Type, sets: &[&'a SelectionSet], value: &Value, at: &str, wrong: &mut Vec<String>) {
        if value.is_null() {
            if ty.is_non_null() {
                wrong.push(format!("{at}: {ty} is null"));
            }
            return;
        }
        match ty {
            Type::List(inner) | Type::NonNullList(inner) => match value.as_array() {
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.value(inner, sets, item, &format!("{at}/{index}"), wrong);
                    }
                }
                None => wrong.push(format!("{at}: {value} is not a list")),
            },
            Type::Named(name) | Type::NonNullNamed(name) => match schema().types.get(name) {
                Some(ExtendedType::Scalar(_)) => {
                    if !is_scalar(name, value) {
                        wrong.push(format!("{at}: {value} is not a {name}"));
                    }
                }
                Some(ExtendedType::Enum(values)) => {
                    if !value.as_str().is_some_and(|text| values.values.contains_key(text)) {
                        wrong.push(format!("{at}: {value} is not a {name}"));
                    }
                }
                _ => self.object(name, sets, value, at, wrong),
            },
        }
    }
}

fn is_scalar(name: &str, value: &Value) -> bool {
    match name {
        "Int" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "Float" => value.is_number(),
        "Boolean" => value.is_boolean(),
        "DateTime" => value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
        "URI" => value.as_str().is_some_and(|text| text.starts_with("http") || text.starts_with('/')),
        "GitObjectID" => value.as_str().is_some_and(|text| text.len() == 40),
        _ => value.is_string(),
    }
}
