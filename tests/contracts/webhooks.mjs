// Takes from GitHub's published examples of webhook payloads (npm: @octokit/webhooks-examples, MIT, by the maintainers of Octokit)
// those that the tests use, without the addresses and accounts that nothing here looks at.
// Usage: node tests/contracts/webhooks.mjs PREFIX > tests/contracts/webhooks/github.json    (PREFIX has the package installed)
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const require = createRequire(import.meta.url);
const at = join(resolve(process.argv[2] ?? "."), "node_modules/@octokit/webhooks-examples");
const all = require(join(at, "api.github.com/index.json"));
const wanted = {
  issues: ["labeled", "opened", "deleted"],
  issue_comment: ["created", "deleted"],
  pull_request: ["opened", "closed"],
  pull_request_review: ["submitted", "dismissed"],
  pull_request_review_comment: ["created"],
  pull_request_review_thread: ["resolved"],
  check_run: ["completed"],
  check_suite: ["completed"],
  workflow_run: ["completed"],
  merge_group: ["checks_requested"],
  projects_v2_item: ["edited"],
  status: [undefined],
  push: [undefined],
  ping: [undefined],
};
const accounts = ["user", "sender", "owner", "organization", "assignee", "creator", "author", "committer", "actor", "triggering_actor"];

function trimmed(value, key = "") {
  if (Array.isArray(value)) return value.slice(0, 3).map((one) => trimmed(one));
  if (value === null || typeof value !== "object") return value;
  if (accounts.includes(key)) return { login: value.login, id: value.id, node_id: value.node_id, type: value.type };
  const kept = Object.entries(value).filter(([name]) => !/(^|_)url$|^_links$|^app$|^reactions$/.test(name));
  if (key === "repository" || key === "repo" || key === "head_repository") {
    const few = ["id", "node_id", "name", "full_name", "private", "owner", "default_branch"];
    return Object.fromEntries(kept.filter(([name]) => few.includes(name)).map(([name, one]) => [name, trimmed(one, name)]));
  }
  return Object.fromEntries(kept.map(([name, one]) => [name, trimmed(one, name)]));
}

const examples = {};
for (const [event, actions] of Object.entries(wanted)) {
  const known = all.find((one) => one.name === event).examples;
  for (const action of actions) {
    const name = action ? `${event}.${action}` : event;
    examples[name] = trimmed(known.find((one) => one.action === action));
  }
}
console.log(JSON.stringify({ package: "@octokit/webhooks-examples", version: require(join(at, "package.json")).version, examples }, null, 1));
