//! The queries and mutations that are sent to GitHub's GraphQL API. The tests that send them check each one against the published schema.

/// Limit of pull requests in one query.
pub const BATCH: usize = 25;

/// Returns a query for `count` pull requests, which have the aliases `p0`, `p1`, ...
pub fn look(count: usize) -> String {
    let variables: String = (0..count).map(|at| format!(", $n{at}: Int!")).collect();
    let parts: String =
        (0..count).map(|at| format!("    p{at}: pullRequest(number: $n{at}) {{ ...Look }}\n")).collect();
    format!(
        "query Look($owner: String!, $name: String!{variables}) {{\n  viewer {{ login }}\n  repository(owner: $owner, name: $name) {{\n{parts}  }}\n}}\n{LOOK}"
    )
}

const LOOK: &str = "
fragment Look on PullRequest {
  id number url title state isDraft
  author { __typename login }
  headRefName headRefOid headRepository { nameWithOwner }
  baseRefName baseRefOid
  mergeable mergeStateStatus isInMergeQueue reviewDecision
  mergeCommit { oid }
  labels(first: 100) { nodes { name } pageInfo { hasNextPage endCursor } }
  reviews(first: 50) { nodes { ...Review } pageInfo { hasNextPage endCursor } }
  reviewThreads(first: 5) { nodes { ...Thread } pageInfo { hasNextPage endCursor } }
  comments(first: 50) { nodes { ...Said } pageInfo { hasNextPage endCursor } }
  statusCheckRollup { contexts(first: 50) { nodes { ...Check } pageInfo { hasNextPage endCursor } } }
}
fragment Review on PullRequestReview {
  id author { __typename login } state commit { oid } body submittedAt isMinimized
}
fragment Thread on PullRequestReviewThread {
  id isResolved path line originalLine
  comments(first: 5) { nodes { ...InThread } pageInfo { hasNextPage endCursor } }
}
fragment InThread on PullRequestReviewComment {
  id author { __typename login } body createdAt updatedAt isMinimized pullRequestReview { id }
}
fragment Said on IssueComment {
  id author { __typename login } body createdAt updatedAt isMinimized
}
fragment Check on StatusCheckRollupContext {
  __typename
  ... on CheckRun { databaseId name status conclusion detailsUrl permalink }
  ... on StatusContext { context state description targetUrl }
}
";

pub const MORE_LABELS: &str = "
query MoreLabels($id: ID!, $after: String) {
  node(id: $id) { ... on PullRequest { page: labels(first: 100, after: $after) {
    nodes { name } pageInfo { hasNextPage endCursor } } } }
}";

pub const MORE_REVIEWS: &str = "
query MoreReviews($id: ID!, $after: String) {
  node(id: $id) { ... on PullRequest { page: reviews(first: 100, after: $after) {
    nodes { id author { __typename login } state commit { oid } body submittedAt isMinimized }
    pageInfo { hasNextPage endCursor } } } }
}";

pub const MORE_COMMENTS: &str = "
query MoreComments($id: ID!, $after: String) {
  node(id: $id) { ... on PullRequest { page: comments(first: 100, after: $after) {
    nodes { id author { __typename login } body createdAt updatedAt isMinimized }
    pageInfo { hasNextPage endCursor } } } }
}";

pub const MORE_THREADS: &str = "
query MoreThreads($id: ID!, $after: String) {
  node(id: $id) { ... on PullRequest { page: reviewThreads(first: 50, after: $after) {
    nodes { id isResolved path line originalLine comments(first: 20) {
      nodes { id author { __typename login } body createdAt updatedAt isMinimized pullRequestReview { id } }
      pageInfo { hasNextPage endCursor } } }
    pageInfo { hasNextPage endCursor } } } }
}";

pub const MORE_IN_THREAD: &str = "
query MoreInThread($id: ID!, $after: String) {
  node(id: $id) { ... on PullRequestReviewThread { page: comments(first: 100, after: $after) {
    nodes { id author { __typename login } body createdAt updatedAt isMinimized pullRequestReview { id } }
    pageInfo { hasNextPage endCursor } } } }
}";

pub const MORE_CHECKS: &str = "
query MoreChecks($id: ID!, $after: String) {
  node(id: $id) { ... on PullRequest { statusCheckRollup { page: contexts(first: 100, after: $after) {
    nodes { __typename
      ... on CheckRun { databaseId name status conclusion detailsUrl permalink }
      ... on StatusContext { context state description targetUrl } }
    pageInfo { hasNextPage endCursor } } } } }
}";

/// What is read right before a merge, and again right after it.
pub const STANDING: &str = "
query Standing($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pull: pullRequest(number: $number) {
    id state title isDraft headRefName headRefOid baseRefName mergeable
    mergeCommit { oid } isInMergeQueue isMergeQueueEnabled
  } }
}";

pub const FIND_NODE: &str = "
query FindNode($owner: String!, $name: String!, $number: Int!, $ids: [ID!]!) {
  repository(owner: $owner, name: $name) { pull: pullRequest(number: $number) { id } }
  nodes(ids: $ids) { __typename ... on PullRequestReviewThread { comments(first: 1) { totalCount } } }
}";

pub const VIEWER: &str = "query Viewer { viewer { login } }";

pub const ENQUEUE: &str = "
mutation Enqueue($id: ID!, $head: GitObjectID) {
  enqueuePullRequest(input: { pullRequestId: $id, expectedHeadOid: $head }) { mergeQueueEntry { id } }
}";

pub const DEQUEUE: &str = "
mutation Dequeue($id: ID!) { dequeuePullRequest(input: { id: $id }) { mergeQueueEntry { id } } }";

pub const READY: &str = "
mutation Ready($id: ID!) { markPullRequestReadyForReview(input: { pullRequestId: $id }) { pullRequest { id } } }";

pub const DRAFT: &str = "
mutation Draft($id: ID!) { convertPullRequestToDraft(input: { pullRequestId: $id }) { pullRequest { id } } }";

pub const REPLY: &str = "
mutation Reply($thread: ID!, $body: String!) {
  addPullRequestReviewThreadReply(input: { pullRequestReviewThreadId: $thread, body: $body }) { comment { id } }
}";

pub const RESOLVE: &str = "
mutation Resolve($thread: ID!) { resolveReviewThread(input: { threadId: $thread }) { thread { id isResolved } } }";

pub const REACT: &str = "
mutation React($subject: ID!, $content: ReactionContent!) {
  addReaction(input: { subjectId: $subject, content: $content }) { reaction { content } }
}";
