// What a worker can reach with what `agent_reading.rs` lets through, in Linear's whole schema: the lists there are read from its source.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const FORBIDDEN_TYPES = /^(Organization|Integration|IntegrationsSettings|IdentityProvider|Webhook|PaidSubscription|AuditEntry|AiConversation)$|ApiKey|OAuth|OauthClient|AuthenticationSession/;
const FORBIDDEN_FIELDS = /secret|token|password|credential|hash$|inviteLink|securitySettings|authSettings/i;

// Each is a sentence: what can be reached, and on which way.
export function reached(text, { buildSchema, getNamedType, isInterfaceType, isUnionType }) {
  const source = fs.readFileSync(path.join(here, '../../src/tracker/linear/agent_reading.rs'), 'utf8');
  const list = (name) => [...source.match(new RegExp(`const ${name}: &\\[&str\\] = &\\[([^\\]]*)\\]`))[1].matchAll(/"([^"]+)"/g)].map((one) => one[1]);
  const hidden = new Set(list('HIDDEN'));
  const schema = buildSchema(text, { assumeValidSDL: true });
  const roots = schema.getQueryType().getFields();
  const names = list('READABLE').filter((name) => !name.startsWith('__'));
  const found = names.filter((name) => !roots[name]).map((name) => `there is no query ${name}`);
  const seen = new Set();
  const queue = names.filter((name) => roots[name]).map((name) => [getNamedType(roots[name].type), name]);
  while (queue.length > 0) {
    const [type, way] = queue.shift();
    if (seen.has(type.name)) continue;
    seen.add(type.name);
    if (FORBIDDEN_TYPES.test(type.name)) found.push(`${type.name} is reached by ${way}`);
    if (isUnionType(type)) queue.push(...type.getTypes().map((one) => [one, way]));
    if (isInterfaceType(type)) queue.push(...schema.getPossibleTypes(type).map((one) => [one, way]));
    for (const field of Object.values(type.getFields?.() ?? {}).filter((one) => !hidden.has(one.name))) {
      if (FORBIDDEN_FIELDS.test(field.name)) found.push(`${type.name}.${field.name} is reached by ${way}`);
      queue.push([getNamedType(field.type), `${way}.${field.name}`]);
    }
  }
  return found;
}
