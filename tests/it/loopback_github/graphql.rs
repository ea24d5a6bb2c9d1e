//! GraphQL: any valid document is answered, and what is not valid is a violation.

use serde_json::{Value, json};

use crate::github::{Demands, Hub, Instead, Line, Question, When};

use super::client::{ask, query, robot};

#[test]
fn issues_are_refreshed_by_their_numbers_in_one_request() {
    let hub = Hub::start();
    let one = hub.add_issue("ada", "One", "First", &["agent"]);
    let two = hub.add_issue("bo", "Two", "Second", &[]);
    hub.comment("ada", one, "Please");
    hub.add_sub_issue(one, two);
    let document = format!(
        "query {{ rateLimit {{ cost remaining resetAt }} repository(owner: \"acme\", name: \"widgets\") {{
            a: issue(number: {one}) {{ ...facts }} b: issue(number: {two}) {{ ...facts }} c: issue(number: 99) {{ ...facts }}
        }} }}
        fragment facts on Issue {{
            number title body state stateReason updatedAt author {{ __typename login ... on User {{ databaseId }} }}
            labels(first: 20) {{ nodes {{ name }} }} parent {{ number }} subIssues(first: 5) {{ totalCount nodes {{ number }} }}
            comments(last: 1) {{ nodes {{ fullDatabaseId body updatedAt isMinimized }} pageInfo {{ hasPreviousPage startCursor }} }}
            timelineItems(first: 10, itemTypes: [LABELED_EVENT]) {{ nodes {{ ... on LabeledEvent {{ actor {{ login }} createdAt label {{ name }} }} }} }}
        }}"
    );
    let answer = query(&hub, &document, json!({}));
    let repository = &answer["data"]["repository"];
    assert_eq!(repository["a"]["labels"]["nodes"][0]["name"], "agent");
    assert_eq!(repository["a"]["comments"]["nodes"][0]["body"], "Please");
    assert_eq!(repository["a"]["timelineItems"]["nodes"][0]["actor"]["login"], "ada");
    assert_eq!(repository["b"]["parent"]["number"], one);
    assert!(repository["c"].is_null());
    assert_eq!(answer["errors"][0]["type"], "NOT_FOUND");
    assert_eq!(answer["errors"][0]["path"], json!(["repository", "c"]));
    assert_eq!(hub.count("graphql/rateLimit+repository"), 1);
}

#[test]
fn wrong_documents_variables_and_answers_are_violations() {
    let hub = Hub::start();
    let wrong = [
        json!({"query": "{ viewer { logn } }"}),
        json!({"query": "{ repository(owner: 1, name: \"x\") { id } }"}),
        json!({"query": "query($n: Int!) { repository(owner: \"acme\", name: \"widgets\") { issue(number: $n) { id } } }"}),
        json!({"query": "query($n: Int!) { repository(owner: \"acme\", name: \"widgets\") { issue(number: $n) { id } } }", "variables": {"n": "one"}}),
        json!({"query": "{ viewer { login } }", "variables": {"unused": 1}}),
        json!({"query": "{ viewer { login"}),
        json!({"text": "{ viewer { login } }"}),
        json!({"query": "{ viewer { login isBountyHunter } }"}),
    ];
    for body in wrong {
        assert_eq!(ask(&hub, "robot-token", "POST", "/graphql", Some(body.clone())).status, 500, "{body}");
        assert_eq!(hub.take_violations().len(), 1, "{body}");
    }
    let edits: [fn(&mut Value); 4] = [
        |body| body["data"]["viewer"]["login"] = Value::Null,
        |body| body["data"]["viewer"]["more"] = json!(1),
        |body| drop(body["data"]["viewer"].as_object_mut().unwrap().remove("id")),
        |body| body["data"]["rateLimit"]["resetAt"] = json!("soon"),
    ];
    for edit in edits {
        hub.fault("graphql/viewer+rateLimit", When::After, Instead::EditedAndChecked(Box::new(edit)));
        let body = json!({"query": "{ viewer { id login } rateLimit { resetAt } }"});
        assert_eq!(ask(&hub, "robot-token", "POST", "/graphql", Some(body)).status, 500);
        assert_eq!(hub.take_violations().len(), 1);
    }
    // GitHub wants the size of each page.
    let answer = query(&hub, "{ repository(owner: \"acme\", name: \"widgets\") { issues { totalCount } } }", json!({}));
    assert_eq!(answer["errors"][0]["type"], "MISSING_PAGINATION_BOUNDARIES");
}

#[test]
fn threads_are_read_answered_and_resolved() {
    let hub = Hub::start();
    hub.push("robot", "one", &[("one.txt", Some("1\n"))], "One");
    let number = hub.open_pull("robot", "one", "main", "One", "");
    let line = Line { path: "one.txt".to_owned(), line: 1, body: "Why?".to_owned() };
    hub.review("ada", number, "CHANGES_REQUESTED", "Please explain.", &[line]);
    let document = "query($n: Int!, $after: String) { repository(owner: \"acme\", name: \"widgets\") { pullRequest(number: $n) {
        id state isDraft headRefOid baseRefName mergeable mergeStateStatus reviewDecision isInMergeQueue
        reviews(first: 10) { nodes { state author { login } commit { oid } submittedAt fullDatabaseId } }
        reviewThreads(first: 50, after: $after) { pageInfo { hasNextPage endCursor } nodes {
            id isResolved isOutdated path line resolvedBy { login }
            comments(first: 20) { nodes { fullDatabaseId databaseId body author { login } replyTo { id } pullRequestReview { id state } } }
        } } } } }";
    let look = || query(&hub, document, json!({"n": number}))["data"]["repository"]["pullRequest"].clone();
    let pull = look();
    assert_eq!(pull["mergeable"], "UNKNOWN");
    let thread = &pull["reviewThreads"]["nodes"][0];
    assert_eq!((&thread["isResolved"], &thread["path"]), (&json!(false), &json!("one.txt")));
    assert!(thread["comments"]["nodes"][0]["databaseId"].is_null(), "it does not fit into an Int any more");
    let reply = "mutation($input: AddPullRequestReviewThreadReplyInput!) { addPullRequestReviewThreadReply(input: $input) { comment { body replyTo { id } } } }";
    let input = json!({"pullRequestReviewThreadId": thread["id"], "body": "Because."});
    query(&hub, reply, json!({"input": input}));
    let resolve = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved resolvedBy { login } } } }";
    query(&hub, resolve, json!({"id": thread["id"]}));
    let after = look();
    assert_eq!(after["mergeable"], "MERGEABLE");
    assert_eq!(after["reviewThreads"]["nodes"][0]["resolvedBy"]["login"], "robot");
    let said: Vec<String> = hub.thread_comments(number)[0].iter().map(|one| one.body.clone()).collect();
    assert_eq!(said, ["Why?", "Because."]);
    assert_eq!(hub.writes().len(), 2);
}

#[test]
fn checks_say_whether_they_are_required() {
    let hub = Hub::start();
    hub.protect("main", Demands { checks: vec!["ci".to_owned()], ..Demands::default() });
    let head = hub.push("robot", "one", &[("one.txt", Some("1\n"))], "One");
    let number = hub.open_pull("robot", "one", "main", "One", "");
    hub.set_job(&head, "ci", Some("failure"), "boom");
    hub.set_job(&head, "lint", None, "");
    hub.set_status("robot", &head, "dirigent/gates", "success");
    let document = "query($n: Int!) { repository(owner: \"acme\", name: \"widgets\") { pullRequest(number: $n) {
        mergeStateStatus statusCheckRollup { state contexts(first: 50) { totalCount nodes { __typename
            ... on CheckRun { name status conclusion detailsUrl isRequired(pullRequestNumber: $n) checkSuite { app { slug } workflowRun { databaseId event } } }
            ... on StatusContext { context state description isRequired(pullRequestNumber: $n) } } } } } } }";
    let answer = query(&hub, document, json!({"n": number}));
    let rollup = &answer["data"]["repository"]["pullRequest"]["statusCheckRollup"];
    assert_eq!(rollup["state"], "FAILURE");
    let required: Vec<bool> = rollup["contexts"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["isRequired"].as_bool().unwrap())
        .collect();
    assert_eq!(required, [true, false, false]);
}

#[test]
fn the_columns_of_a_project_are_read_and_moved() {
    let hub = Hub::start();
    let number = hub.add_issue("ada", "One", "", &[]);
    let board = hub.add_project(3, "Status", &["Todo", "In progress", "Done"]);
    hub.move_in_project("ada", board, number, "Todo");
    let document = "query { organization(login: \"acme\") { projectV2(number: 3) { id
        field(name: \"Status\") { ... on ProjectV2SingleSelectField { id options { id name } } }
        items(first: 100) { pageInfo { hasNextPage endCursor } nodes { id updatedAt content { __typename ... on Issue { number } }
            fieldValueByName(name: \"Status\") { ... on ProjectV2ItemFieldSingleSelectValue { name optionId updatedAt creator { login } } } } } } } }";
    let read = || query(&hub, document, json!({}))["data"]["organization"]["projectV2"].clone();
    let project = read();
    let item = &project["items"]["nodes"][0];
    assert_eq!(item["fieldValueByName"]["name"], "Todo");
    assert_eq!(item["fieldValueByName"]["creator"]["login"], "ada");
    let input = json!({
        "projectId": project["id"], "itemId": item["id"], "fieldId": project["field"]["id"],
        "value": {"singleSelectOptionId": project["field"]["options"][1]["id"]},
    });
    let moves = "mutation($input: UpdateProjectV2ItemFieldValueInput!) { updateProjectV2ItemFieldValue(input: $input) { projectV2Item { id } } }";
    query(&hub, moves, json!({"input": input}));
    assert_eq!(hub.column(board, number).as_deref(), Some("In progress"));
    hub.add_scoped_token("robot", "narrow", &["repo"]);
    let refused = ask(&hub, "narrow", "POST", "/graphql", Some(json!({"query": document}))).json();
    assert_eq!(refused["errors"][0]["type"], "INSUFFICIENT_SCOPES");
}

#[test]
fn the_merge_queue_lands_or_throws_out() {
    let hub = Hub::start();
    hub.add_ruleset("queue", "main", Demands { merge_queue: true, ..Demands::default() });
    let head = hub.push("robot", "one", &[("one.txt", Some("1\n"))], "One");
    let number = hub.open_pull("robot", "one", "main", "One", "");
    let direct = robot(&hub, "PUT", &format!("/pulls/{number}/merge"), Some(json!({"sha": head})));
    assert_eq!(direct.status, 405);
    assert!(direct.text.unwrap().contains("merge queue"));
    let id = robot(&hub, "GET", &format!("/pulls/{number}"), None).json()["node_id"].clone();
    let enqueue = "mutation($id: ID!, $head: GitObjectID) { enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { mergeQueueEntry { state position } } }";
    let entered = query(&hub, enqueue, json!({"id": id, "head": head}));
    assert_eq!(entered["data"]["enqueuePullRequest"]["mergeQueueEntry"]["position"], 1);
    assert_eq!(query(&hub, enqueue, json!({"id": id}))["errors"][0]["type"], "UNPROCESSABLE");
    assert_eq!(hub.run_merge_queue(false), Some(number));
    assert!(hub.merges().is_empty());
    query(&hub, enqueue, json!({"id": id}));
    let dequeue = "mutation($id: ID!) { dequeuePullRequest(input: {id: $id}) { clientMutationId } }";
    query(&hub, dequeue, json!({"id": id}));
    assert_eq!(hub.run_merge_queue(true), None);
    query(&hub, enqueue, json!({"id": id}));
    assert_eq!(hub.run_merge_queue(true), Some(number));
    assert_eq!(hub.merges().len(), 1);
}

#[test]
fn the_cost_of_a_document_is_known() {
    let cost = |document: &str| Question::read(&json!({"query": document})).ok().unwrap().cost();
    assert_eq!(cost("{ viewer { login } }"), 1);
    // GitHub's own example of the arithmetic: 1 + 100 + 100 * 50 fetches are 51 points.
    let nested = "{ repository(owner: \"a\", name: \"b\") { pullRequests(first: 100) { nodes { reviewThreads(first: 50) { nodes { comments(first: 60) { nodes { id } } } } } } } }";
    assert_eq!(cost(nested), 52);
}

#[test]
fn drafts_labels_reactions_and_auto_merge() {
    let hub = Hub::start();
    hub.protect("main", Demands { reviews: 1, ..Demands::default() });
    hub.push("robot", "one", &[("one.txt", Some("1\n"))], "One");
    let made =
        robot(&hub, "POST", "/pulls", Some(json!({"title": "One", "head": "one", "base": "main", "draft": true})));
    let (number, id) = (made.json()["number"].as_u64().unwrap(), made.json()["node_id"].clone());
    let ready =
        "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }";
    assert_eq!(
        query(&hub, ready, json!({"id": id}))["data"]["markPullRequestReadyForReview"]["pullRequest"]["isDraft"],
        false
    );
    let auto = "mutation($id: ID!) { enablePullRequestAutoMerge(input: {pullRequestId: $id, mergeMethod: SQUASH}) { pullRequest { autoMergeRequest { mergeMethod enabledBy { login } } } } }";
    query(&hub, auto, json!({"id": id}));
    assert_eq!(robot(&hub, "GET", &format!("/pulls/{number}"), None).json()["auto_merge"]["merge_method"], "squash");
    let comment = hub.comment("ada", number, "/dirigent approve");
    let react = "mutation($id: ID!) { addReaction(input: {subjectId: $id, content: EYES}) { reaction { content } } }";
    query(&hub, react, json!({"id": format!("IC_{comment}")}));
    assert_eq!(hub.reactions(comment), [("robot".to_owned(), "eyes".to_owned())]);
}
