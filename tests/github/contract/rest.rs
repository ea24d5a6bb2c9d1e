//! REST exchanges held against GitHub's description: path, query and body of the request, status and body of the answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};

use super::route::Route;

const TEXT: &str = include_str!("../../contracts/github-rest.json");
const BASE: &str = "urn:github";

static CONTRACT: LazyLock<RestContract> = LazyLock::new(RestContract::load);

/// The description, with compiled validators as they are needed. One for the whole process: compiling them is what costs.
pub struct RestContract {
    document: &'static Value,
    registry: Registry<'static>,
    routes: Vec<Route>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl RestContract {
    pub fn get() -> &'static Self {
        &CONTRACT
    }

    fn load() -> Self {
        let document: &'static Value = Box::leak(Box::new(serde_json::from_str(TEXT).unwrap()));
        let registry = Registry::new().draft(Draft::Draft202012).add(BASE, document).unwrap().prepare().unwrap();
        let mut routes = Vec::new();
        for (template, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                routes.push(Route::new(operation["operationId"].as_str().unwrap(), method, template));
            }
        }
        routes.sort_by_key(|route| std::cmp::Reverse(route.exactness()));
        Self { document, registry, routes, validators: Mutex::default() }
    }

    pub fn find(&self, method: &str, path: &str) -> Option<(&Route, BTreeMap<String, String>)> {
        self.routes.iter().find_map(|route| Some((route, route.parameters(method, path)?)))
    }

    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(|route| route.operation.as_str())
    }

    /// What is wrong with a request, in words; empty if nothing is.
    pub fn check_request(
        &self,
        route: &Route,
        parameters: &BTreeMap<String, String>,
        query: &[(String, String)],
        body: Option<&Value>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let documented = self.parameters(route);
        for (name, value) in parameters {
            if let Some((parameter, at)) = documented.get(&("path".to_owned(), name.clone())) {
                self.hold(at, &self.typed(parameter, value), &format!("path {name}"), &mut wrong);
            }
        }
        for (name, value) in query {
            match documented.get(&("query".to_owned(), name.clone())) {
                Some((parameter, at)) => {
                    self.hold(at, &self.typed(parameter, value), &format!("query {name}"), &mut wrong);
                }
                // GitHub ignores such a parameter without a word, which is the kind of mistake that this is here to find.
                None => wrong.push(format!("query {name}: not in the description")),
            }
        }
        let (content, at) = self.resolved(&self.operation(route)["requestBody"], self.pointer(route, "requestBody"));
        match (content.pointer("/content/application~1json/schema").is_some(), body) {
            (true, Some(body)) => {
                self.hold_strictly(&format!("{at}/content/application~1json/schema"), body, "body", &mut wrong);
            }
            (true, None) if content["required"] == true => wrong.push("body: missing".to_owned()),
            (false, Some(body)) if !body.is_null() => wrong.push("body: the operation takes none".to_owned()),
            _ => {}
        }
        wrong
    }

    /// What is wrong with an answer, in words; empty if nothing is.
    pub fn check_answer(&self, route: &Route, status: u16, body: Option<&Value>) -> Vec<String> {
        let mut wrong = Vec::new();
        let responses = &self.operation(route)["responses"];
        let Some(response) = responses.get(status.to_string()) else {
            return vec![format!("status {status}: not documented")];
        };
        let (response, at) = self.resolved(response, self.pointer(route, &format!("responses/{status}")));
        match (response.pointer("/content/application~1json/schema").is_some(), body) {
            (true, Some(body)) => {
                self.hold_strictly(&format!("{at}/content/application~1json/schema"), body, "answer", &mut wrong);
            }
            (true, None) => wrong.push(format!("answer: {status} has a body in the description")),
            // Some refusals are described without their body; GitHub sends its usual message all the same.
            (false, Some(body)) if status < 400 && !body.is_null() => {
                wrong.push(format!("answer: {status} has no body"));
            }
            _ => {}
        }
        wrong
    }

    fn operation(&self, route: &Route) -> &Value {
        &self.document["paths"][&route.template][&route.method]
    }

    fn pointer(&self, route: &Route, rest: &str) -> String {
        format!("#/paths/{}/{}/{rest}", escaped(&route.template), route.method)
    }

    /// The parameters by place and name, each with the address of its schema.
    fn parameters(&self, route: &Route) -> BTreeMap<(String, String), (&Value, String)> {
        let listed = self.operation(route)["parameters"].as_array();
        let one = |(index, parameter)| {
            let (parameter, at) = self.resolved(parameter, self.pointer(route, &format!("parameters/{index}")));
            let text = |key: &str| parameter[key].as_str().unwrap().to_owned();
            ((text("in"), text("name")), (parameter, format!("{at}/schema")))
        };
        listed.into_iter().flatten().enumerate().map(one).collect()
    }

    fn resolved<'a>(&'a self, node: &'a Value, at: String) -> (&'a Value, String) {
        match node["$ref"].as_str() {
            Some(reference) => (self.document.pointer(&reference[1..]).unwrap(), reference.to_owned()),
            None => (node, at),
        }
    }

    /// The text of a parameter as the type that the description gives it.
    fn typed(&self, parameter: &Value, text: &str) -> Value {
        let (schema, _) = self.resolved(&parameter["schema"], String::new());
        match schema["type"].as_str() {
            Some("integer" | "number") => text.parse::<i64>().map_or_else(|_| json!(text), Value::from),
            Some("boolean") => text.parse::<bool>().map_or_else(|_| json!(text), Value::from),
            _ => json!(text),
        }
    }

    fn hold(&self, at: &str, value: &Value, what: &str, wrong: &mut Vec<String>) {
        self.validate(at.to_owned(), &json!({"$ref": format!("{BASE}{at}")}), value, what, wrong);
    }

    /// As `hold`, and a field that the description does not know is wrong, in an object and in the objects of a list.
    fn hold_strictly(&self, at: &str, value: &Value, what: &str, wrong: &mut Vec<String>) {
        let reference = format!("{BASE}{at}");
        let schema = json!({
            "$ref": reference,
            "if": {"type": "object"},
            "then": {"$ref": reference, "unevaluatedProperties": false},
        });
        self.validate(format!("strict {at}"), &schema, value, what, wrong);
        if let (Some(items), Some(list)) = (self.items(at), value.as_array()) {
            for (index, item) in list.iter().enumerate() {
                self.hold_strictly(&items, item, &format!("{what}/{index}"), wrong);
            }
        }
    }

    /// The address of the schema of a list's items.
    fn items(&self, at: &str) -> Option<String> {
        let schema = self.document.pointer(&at.replace("%7B", "{").replace("%7D", "}")[1..])?;
        let (schema, at) = self.resolved(schema, at.to_owned());
        let items = schema.get("items")?;
        Some(self.resolved(items, format!("{at}/items")).1)
    }

    fn validate(&self, key: String, schema: &Value, value: &Value, what: &str, wrong: &mut Vec<String>) {
        let known = self.validators.lock().unwrap().get(&key).cloned();
        let validator = known.unwrap_or_else(|| {
            let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
            let built = Arc::new(options.with_registry(&self.registry).build(schema).unwrap());
            self.validators.lock().unwrap().insert(key, built.clone());
            built
        });
        for error in validator.iter_errors(value).take(5) {
            let mut value = error.instance().to_string();
            if value.len() > 200 {
                value.truncate((0..=200).rev().find(|at| value.is_char_boundary(*at)).unwrap());
                value.push_str(" ...");
            }
            let words = error.masked_with(value);
            wrong.push(format!("{what}{}: {words}", error.instance_path()));
        }
    }
}

fn escaped(template: &str) -> String {
    template.replace('~', "~0").replace('/', "~1").replace('{', "%7B").replace('}', "%7D")
}
