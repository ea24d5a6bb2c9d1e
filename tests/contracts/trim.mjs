// Makes github-rest.json and github.graphql from GitHub's published packages, or says whether they are still what those packages give.
//
//   node trim.mjs make  <folder with node_modules>
//   node trim.mjs check <folder with node_modules>
//
// `install.sh` installs the packages in the versions that github-wanted.json names. Exit codes: 0 fine, 1 different, 2 not there.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { printRest, trimRest } from './rest.mjs';
import { trimGraphql } from './graphql.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const [verb, prefix] = process.argv.slice(2);
if (!['make', 'check'].includes(verb) || !prefix) leave(2, 'usage: node trim.mjs make|check <folder with node_modules>');

const wanted = JSON.parse(fs.readFileSync(path.join(here, 'github-wanted.json'), 'utf8'));
const rest = read(wanted.rest);
const graphql = read(wanted.graphql);
const library = createRequire(path.join(path.resolve(prefix), 'node_modules', 'x.js'))('graphql');

const made = {
  'github-rest.json': printRest(trimRest(JSON.parse(rest.text), wanted.rest.operations), rest.note),
  'github.graphql': `# ${graphql.note}\n\n${trimGraphql(graphql.text, wanted.graphql.types, library)}`,
};
let differing = 0;
for (const [name, text] of Object.entries(made)) {
  const file = path.join(here, name);
  if (verb === 'make') {
    fs.writeFileSync(file, text);
    console.log(`${name}: ${text.length} bytes`);
  } else if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) {
    console.error(`${name} is not what the packages give now: run \`node trim.mjs make\` and read the diff.`);
    differing += 1;
  }
}
process.exitCode = differing ? 1 : 0;

function read(source) {
  const root = path.join(prefix, 'node_modules', source.package);
  if (!fs.existsSync(root)) leave(2, `${source.package} is not installed below ${prefix}: run install.sh`);
  const installed = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')).version;
  if (installed !== source.version) leave(1, `${source.package} is ${installed}, github-wanted.json says ${source.version}.`);
  const text = fs.readFileSync(path.join(root, source.file), 'utf8');
  const hash = createHash('sha256').update(text).digest('hex');
  return { text, note: `Made by trim.mjs from ${source.package} ${source.version}, ${source.file} (sha256 ${hash}). MIT, see LICENSE-octokit.` };
}

function leave(code, why) {
  console.error(why);
  process.exit(code);
}
