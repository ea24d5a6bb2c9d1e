//! What an agent may read of Linear: a list of allowed root fields, and a list of fields that are refused at any depth.

use graphql_parser::query::{FragmentDefinition, Selection, SelectionSet, TypeCondition};

type Text = String;

/// The fields that a query may have at its root.
const READABLE: &[&str] = &[
    "__schema",
    "__type",
    "__typename",
    "attachment",
    "attachmentIssue",
    "attachments",
    "attachmentsForURL",
    "comment",
    "comments",
    "cycle",
    "cycles",
    "document",
    "documents",
    "issue",
    "issueLabel",
    "issueLabels",
    "issueRelation",
    "issueRelations",
    "issueVcsBranchSearch",
    "issues",
    "project",
    "projectMilestone",
    "projectMilestones",
    "projectUpdate",
    "projectUpdates",
    "projects",
    "rateLimitStatus",
    "searchIssues",
    "team",
    "teams",
    "user",
    "users",
    "viewer",
    "workflowState",
    "workflowStates",
];

/// Fields that are refused at any depth. `tests/contracts/reach.mjs` follows Linear's whole schema and reports what else can be
/// reached.
const HIDDEN: &[&str] = &[
    "accessToken",
    "aiConversation",
    "apiKey",
    "apiKeys",
    "auditEntries",
    "authenticationSessions",
    "calendarHash",
    "clientSecret",
    "identityProvider",
    "integration",
    "integrations",
    "integrationsSettings",
    "inviteHash",
    "inviteLink",
    "oauthClient",
    "oauthClients",
    "organization",
    "secret",
    "securitySettings",
    "sessions",
    "sourceOrganization",
    "token",
    "webhookSecret",
    "webhooks",
];

pub fn refuse_hidden(selection: &SelectionSet<'static, Text>) -> Result<(), String> {
    for item in &selection.items {
        match item {
            Selection::Field(field) if HIDDEN.contains(&field.name.as_str()) => {
                return Err(format!("`{}` is not shown to workers", field.name));
            }
            Selection::Field(field) => refuse_hidden(&field.selection_set)?,
            Selection::InlineFragment(inline) => refuse_hidden(&inline.selection_set)?,
            // The fragment's definition is checked by itself.
            Selection::FragmentSpread(_) => {}
        }
    }
    Ok(())
}

/// Checks that every field at the root may be read, including the fields of fragments on the root.
pub fn readable(
    selection: &SelectionSet<'static, Text>,
    fragments: &[FragmentDefinition<'static, Text>],
) -> Result<(), String> {
    let on_root = |fragment: &&FragmentDefinition<'static, Text>| matches!(&fragment.type_condition, TypeCondition::On(name) if name == "Query");
    let roots = fragments.iter().filter(on_root).map(|fragment| &fragment.selection_set);
    for root in roots.chain([selection]) {
        readable_fields(root)?;
    }
    Ok(())
}

fn readable_fields(selection: &SelectionSet<'static, Text>) -> Result<(), String> {
    for item in &selection.items {
        match item {
            Selection::Field(field) if READABLE.contains(&field.name.as_str()) => {}
            Selection::Field(field) => {
                return Err(format!("`{}` may not be read; may be read: {}", field.name, READABLE.join(", ")));
            }
            Selection::InlineFragment(inline) => readable_fields(&inline.selection_set)?,
            // A fragment on another type does not fit here, and Linear refuses it.
            Selection::FragmentSpread(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::agent_document::{AgentDocument, Deed};

    fn understood(query: &str) -> Result<Deed, String> {
        AgentDocument::read(&json!({ "query": query })).map(|document| document.deed)
    }

    #[test]
    fn what_only_reads_is_a_list() {
        for query in [
            "{ viewer { id } }",
            "query Q($id: String!) { a: issue(id: $id) { ...F } b: issues { nodes { id } } } fragment F on Issue { title }",
            "{ ...R } fragment R on Query { issues { nodes { id } } }",
            "{ __type(name: \"Issue\") { name } }",
        ] {
            assert_eq!(understood(query), Ok(Deed::Read), "{query}");
        }
        assert_eq!(AgentDocument::read(&json!("{ viewer { id } }")).unwrap().deed, Deed::Read, "the query alone");
        for (query, says) in [
            ("{ webhooks { nodes { secret } } }", "`webhooks` is not shown"),
            ("{ viewer { organization { id } } }", "`organization` is not shown"),
            ("{ viewer { mine: calendarHash } }", "`calendarHash` is not shown"),
            ("{ project(id: \"p\") { facets { sourceOrganization { id } } } }", "`sourceOrganization` is not shown"),
            ("{ issues { nodes { ...F } } } fragment F on Issue { team { webhooks { nodes { id } } } }", "not shown"),
            ("{ x: applicationInfo(clientId: \"1\") { id } }", "`applicationInfo` may not be read"),
            ("{ ...R } fragment R on Query { notifications { nodes { id } } }", "`notifications` may not be read"),
            ("{ ... on Query { notifications { nodes { id } } } }", "`notifications` may not be read"),
            ("subscription { issueCreated { id } }", "subscription"),
            ("query A { viewer { id } } query B { viewer { id } }", "several operations"),
            ("fragment F on Issue { id }", "no operation"),
            ("", "empty"),
            ("{ viewer { id }", "not a GraphQL document"),
        ] {
            let refused = understood(query).expect_err(query);
            assert!(refused.contains(says), "{query}: {refused}");
        }
        let deep = format!("{}{}", "{ a ".repeat(5000), "}".repeat(5000));
        assert!(understood(&deep).expect_err("too deep").contains("not a GraphQL document"));
        for request in
            [json!(3), json!({}), json!({"query": 1}), json!({"query": "{viewer{id}}", "operationName": "x"})]
        {
            assert!(AgentDocument::read(&request).is_err(), "{request}");
        }
    }
}
