/**
 * Writes `types.py`: the schemas of the OpenAPI document as typed dictionaries. `--check` compares instead.
 * Functional syntax is used for names that are keywords of Python, and inheritance for fields that may be missing, since
 * `NotRequired` came with 3.11.
 */
import { readFileSync, writeFileSync } from 'node:fs';

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly $ref?: string;
}

const DOCUMENT = new URL('../../docs/reference/openapi.json', import.meta.url);
const FILE = new URL('./src/doorplate_client/types.py', import.meta.url);
const PRIMITIVES: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
  object: 'dict[str, Any]',
};
const KEYWORDS = new Set(['from']);

const definitions: string[] = [];

const literal = (value: unknown): string =>
  typeof value === 'boolean' ? (value ? 'True' : 'False') : value === null ? 'None' : JSON.stringify(value);

const union = (types: readonly string[]): string => {
  const all = [...new Set(types)];
  // A reference to a later class is a string, which `|` does not take at run time.
  return all.length === 1 ? (all[0] as string) : `Union[${all.join(', ')}]`;
};

/** @param name of the dictionary that a nested object becomes */
const typeOf = (schema: Schema, name: string): string => {
  if (schema.$ref) return JSON.stringify(schema.$ref.split('/').at(-1));
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return union(alternatives.map((one) => typeOf(one, name)));
  if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
  if (schema.enum) return `Literal[${schema.enum.map(literal).join(', ')}]`;
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ ...schema, type }, name)));
  if (schema.type === 'array') return `list[${typeOf(schema.items ?? {}, `${name}Item`)}]`;
  if (schema.type === 'object' && schema.properties) {
    define(name, schema);
    return JSON.stringify(name);
  }
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object')
    return `dict[str, ${typeOf(schema.additionalProperties, name)}]`;
  return PRIMITIVES[String(schema.type)] ?? 'Any';
};

const define = (name: string, schema: Schema): void => {
  const fields = Object.entries(schema.properties ?? {}).map(([field, one]) => ({
    field,
    type: typeOf(one, `${name}${camel(field)}`),
    isRequired: schema.required?.includes(field) ?? false,
  }));
  const [required, optional] = [fields.filter((f) => f.isRequired), fields.filter((f) => !f.isRequired)];
  const base = optional.length > 0 && required.length > 0 ? `_${name}Required` : name;
  if (required.length > 0) definitions.push(dictionary(base, required, 'TypedDict'));
  if (optional.length > 0)
    definitions.push(dictionary(name, optional, base === name ? 'TypedDict' : base, 'total=False'));
};

const dictionary = (
  name: string,
  fields: readonly { readonly field: string; readonly type: string }[],
  base: string,
  option = '',
): string => {
  if (fields.some(({ field }) => KEYWORDS.has(field))) {
    const entries = fields.map(({ field, type }) => `        ${JSON.stringify(field)}: ${type},`);
    return `${name} = TypedDict(\n    "${name}",\n    {\n${entries.join('\n')}\n    },\n)\n`;
  }
  const head = option === '' ? base : `${base}, ${option}`;
  return `class ${name}(${head}):\n${fields.map(({ field, type }) => `    ${field}: ${type}`).join('\n')}\n`;
};

const camel = (name: string): string =>
  name.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());

const generate = (): string => {
  const document = JSON.parse(readFileSync(DOCUMENT, 'utf8')) as {
    components: { schemas: Record<string, Schema> };
  };
  const aliases: string[] = [];
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    if (schema.properties && Object.keys(schema.properties).length > 0) define(name, schema);
    else aliases.push(`${name} = ${typeOf(schema, name)}\n`);
  }
  return [
    '"""The shapes of the API, made from its OpenAPI document by generate.ts."""\n\nfrom typing import Any, Literal, TypedDict, Union\n',
    ...definitions,
    aliases.join(''),
  ].join('\n\n');
};

const text = generate();
if (!process.argv.includes('--check')) writeFileSync(FILE, text);
else if (readFileSync(FILE, 'utf8') !== text) {
  process.stderr.write('clients/python is behind the OpenAPI document: npm run generate:python\n');
  process.exit(1);
}
