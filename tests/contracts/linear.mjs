// Makes linear.graphql from Linear's published schema, or says whether it is still what that schema gives: field by field, arguments,
// defaults and nullability included.
//
//   node linear.mjs make  <folder that install.sh filled>
//   node linear.mjs check <folder that install.sh filled>
//
// Exit codes: 0 fine, 1 different, 2 not there.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { trimGraphql } from './graphql.mjs';
import { reached } from './reach.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const [verb, prefix] = process.argv.slice(2);
if (!['make', 'check'].includes(verb) || !prefix) leave(2, 'usage: node linear.mjs make|check <folder that install.sh filled>');

const wanted = JSON.parse(fs.readFileSync(path.join(here, 'linear-wanted.json'), 'utf8'));
const source = path.join(prefix, `${wanted.crate}-${wanted.version}`, wanted.file);
if (!fs.existsSync(source)) leave(2, `${wanted.crate} ${wanted.version} is not below ${prefix}: run install.sh`);
const text = fs.readFileSync(source, 'utf8');
const hash = createHash('sha256').update(text).digest('hex');
const library = createRequire(path.join(path.resolve(prefix), 'node_modules', 'x.js'))('graphql');

const note = `Made by linear.mjs from ${wanted.crate} ${wanted.version}, ${wanted.file} (sha256 ${hash}). MIT, see LICENSE-linear.`;
const made = `# ${note}\n\n${trimGraphql(text, wanted.types, library)}`;
const file = path.join(here, 'linear.graphql');
const missing = fs.readFileSync(path.join(path.dirname(source), '..', 'LICENSE-MIT'), 'utf8').split('\n')
  .filter((line) => !fs.readFileSync(path.join(here, 'LICENSE-linear'), 'utf8').split('\n').includes(line) && line !== 'MIT License');
if (missing.length > 0) leave(1, `LICENSE-linear is not the notice that the crate has: ${missing[0]}`);
const open = reached(text, library);
if (open.length > 0) leave(1, `workers may read what they should not: ${open.join('; ')}`);
if (verb === 'make') {
  fs.writeFileSync(file, made);
  console.log(`linear.graphql: ${made.length} bytes`);
} else if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== made) {
  leave(1, 'linear.graphql is not what the published schema gives now: run `node linear.mjs make` and read the diff.');
}

function leave(code, why) {
  console.error(why);
  process.exit(code);
}
