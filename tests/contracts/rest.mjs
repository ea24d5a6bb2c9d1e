// Cuts the operations that we use out of GitHub's REST description, with every schema that they refer to.
//
// Descriptions and examples are left out; OpenAPI 3.0's `nullable` becomes a JSON Schema null type, because validators ignore or refuse
// it otherwise.

const DROPPED = new Set(['title', 'description', 'externalDocs', 'example', 'examples', 'tags', 'summary', 'x-github', 'x-multi-segment', 'deprecated', 'headers']);
// Below these keys are values, not schemas.
const VALUES = new Set(['default', 'enum', 'const', 'required']);

export function trimRest(source, operations) {
  const at = ref => ref.slice(2).split('/').map(part => part.replace(/~1/g, '/').replace(/~0/g, '~')).reduce((node, key) => node[key], source);
  const wanted = new Set(operations);
  const paths = {};
  for (const [path, item] of Object.entries(source.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (wanted.delete(operation?.operationId)) (paths[path] ??= {})[method] = convert(operation);
    }
  }
  if (wanted.size) throw new Error(`GitHub's description no longer has: ${[...wanted].join(', ')}`);

  const components = {};
  const follow = node => {
    if (Array.isArray(node)) return node.forEach(follow);
    if (!node || typeof node !== 'object') return;
    if (typeof node.$ref === 'string') {
      const [, , kind, name] = node.$ref.split('/');
      if (!components[kind]?.[name]) {
        const found = convert(at(node.$ref));
        (components[kind] ??= {})[name] = found;
        follow(found);
      }
    }
    Object.values(node).forEach(follow);
  };
  follow(paths);
  return { paths: sorted(paths), components: Object.fromEntries(Object.entries(sorted(components)).map(([kind, names]) => [kind, sorted(names)])) };
}

const sorted = map => Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));

// `named` says that the keys of this map are names that somebody gave (of properties, of responses), not words of the schema language.
function convert(node, named = false) {
  if (Array.isArray(node)) return node.map(item => convert(item));
  if (!node || typeof node !== 'object') return node;
  const out = {};
  for (const [key, value] of Object.entries(node)) {
    if (!named && DROPPED.has(key)) continue;
    if (!named && VALUES.has(key)) out[key] = value;
    else out[key] = convert(value, !named && (key === 'properties' || key === 'responses' || key === 'content'));
  }
  if (named || typeof node.nullable !== 'boolean') return out;
  delete out.nullable;
  if (!node.nullable) return out;
  if (typeof out.type === 'string' && !out.allOf && !out.oneOf && !out.anyOf) {
    out.type = [out.type, 'null'];
    if (Array.isArray(out.enum) && !out.enum.includes(null)) out.enum = [...out.enum, null];
    return out;
  }
  return { anyOf: [out, { type: 'null' }] };
}

// One line per operation and per schema: small, and a change of the description is a readable diff.
export function printRest({ paths, components }, note) {
  const lines = [];
  for (const [path, item] of Object.entries(paths)) {
    const methods = Object.entries(item).map(([method, operation]) => `   ${JSON.stringify(method)}: ${JSON.stringify(operation)}`);
    lines.push(`  ${JSON.stringify(path)}: {\n${methods.join(',\n')}\n  }`);
  }
  const kinds = Object.entries(components).map(([kind, names]) => {
    const entries = Object.entries(names).map(([name, schema]) => `   ${JSON.stringify(name)}: ${JSON.stringify(schema)}`);
    return `  ${JSON.stringify(kind)}: {\n${entries.join(',\n')}\n  }`;
  });
  return `{\n "note": ${JSON.stringify(note)},\n "paths": {\n${lines.join(',\n')}\n },\n "components": {\n${kinds.join(',\n')}\n }\n}\n`;
}
