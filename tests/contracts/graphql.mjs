// Cuts the types that we use out of GitHub's GraphQL schema.
//
// A type is kept if it is on the list, and of a type with a list of fields only those fields. A field stays if its type stays; enums,
// scalars and input objects stay if something refers to them.

export function trimGraphql(text, wanted, { parse, print, Kind }) {
  const all = new Map();
  for (const definition of parse(text, { noLocation: true }).definitions) {
    if (definition.name && definition.kind !== Kind.DIRECTIVE_DEFINITION) all.set(definition.name.value, definition);
  }
  for (const [name, fields] of Object.entries(wanted)) {
    const definition = all.get(name);
    const known = new Set((definition?.fields ?? []).map(field => field.name.value));
    const missing = !definition ? [name] : fields === '*' ? [] : fields.filter(field => !known.has(field)).map(field => `${name}.${field}`);
    if (missing.length) throw new Error(`the schema no longer has: ${missing.join(', ')}`);
  }

  const composite = new Set([Kind.OBJECT_TYPE_DEFINITION, Kind.INTERFACE_TYPE_DEFINITION, Kind.UNION_TYPE_DEFINITION]);
  const listed = name => name in wanted || name.endsWith('Payload');
  const named = type => (type.kind === Kind.NAMED_TYPE ? type.name.value : named(type.type));
  const stays = name => !all.has(name) || !composite.has(all.get(name).kind) || listed(name);

  const kept = new Map();
  const keep = name => {
    const definition = all.get(name);
    if (!definition || kept.has(name) || !stays(name)) return;
    const only = Array.isArray(wanted[name]) ? new Set(wanted[name]) : null;
    const seen = new Set();
    const fields = definition.fields?.filter(field => {
      const field_name = field.name.value;
      if (seen.has(field_name) || !stays(named(field.type)) || (only && !only.has(field_name))) return false;
      return seen.add(field_name);
    });
    const members = definition.types?.filter(type => listed(type.name.value));
    const interfaces = definition.interfaces?.filter(type => type.name.value in wanted);
    kept.set(name, bare({ ...definition, fields, types: members, interfaces }));
    for (const field of fields ?? []) {
      keep(named(field.type));
      for (const argument of field.arguments ?? []) keep(named(argument.type));
    }
    for (const type of [...(members ?? []), ...(interfaces ?? [])]) keep(type.name.value);
  };
  // Interfaces do not lead to the types that implement them, so everything on the list is a root.
  Object.keys(wanted).forEach(keep);

  const names = [...kept.keys()].sort();
  return names.map(name => print(kept.get(name))).join('\n\n') + '\n';
}

// Without descriptions and directives, at any depth.
function bare(node) {
  if (Array.isArray(node)) return node.map(bare);
  if (!node || typeof node !== 'object') return node;
  const out = {};
  for (const [key, value] of Object.entries(node)) {
    if (key !== 'description') out[key] = key === 'directives' ? [] : bare(value);
  }
  return out;
}
