/**
 * Generates the types of the TypeScript client from the service's OpenAPI document: `npm run generate:typescript`. With `--check` it writes
 * nothing and fails when the file is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const DOCUMENT = new URL('../../docs/reference/openapi.json', import.meta.url);
const FILE = new URL('../../clients/typescript/src/generated.ts', import.meta.url);
/** Operations that browsers call with a tracker's id, and never a partner with a key. */
const PIXEL = '/tracking/';
const NOTE = '// Made from the OpenAPI document by generate-typescript.ts: never edited by hand.\n\n';

/** What the client has no use for, since `operations` says the same by id. */
const UNUSED: readonly string[] = ['paths', 'webhooks', '$defs'];

const nameOf = (node: object): string => ('name' in node ? (node.name as { text?: string }).text : '') ?? '';

interface Operation {
  readonly operationId: string;
  readonly responses: Record<string, { headers?: object }>;
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  webhooks?: object;
  readonly components: { readonly schemas: Record<string, object>; headers?: object };
  readonly [catalog: `x-${string}`]: readonly { readonly code: string; readonly description: string }[];
}

/**
 * The document without the parts that the types do not need: every refusal of every operation, headers, and the
 * pixel.
 */
const partnersDocument = (): Document => {
  const text = readFileSync(DOCUMENT, 'utf8');
  // `Error` would hide JavaScript's own.
  const document: Document = JSON.parse(
    text.replaceAll('#/components/schemas/Error"', '#/components/schemas/ErrorBody"'),
  );
  for (const path of Object.keys(document.paths)) if (path.startsWith(PIXEL)) delete document.paths[path];
  const { schemas } = document.components;
  schemas.ErrorBody = schemas.Error as object;
  delete schemas.Error;
  delete document.components.headers;
  delete document.webhooks;
  for (const { responses } of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    for (const [status, response] of Object.entries(responses)) {
      if (status.startsWith('2')) delete response.headers;
      else delete responses[status];
    }
  }
  return document;
};

const endpointsOf = (document: Document): string => {
  const lines = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => `  ${operationId}: ['${method.toUpperCase()}', '${path}'],`,
    ),
  );
  return `/** Where each operation is. */\nexport const endpoints = {\n${lines.join('\n')}\n} as const;\n`;
};

const errorCodesOf = (document: Document): string => {
  const catalogs = ['x-error-codes', 'x-tracking-error-codes', 'x-doorplate-error-codes'] as const;
  const lines = catalogs
    .flatMap((catalog) => document[catalog] ?? [])
    .map(({ code, description }) => `  /** ${description} */\n  | '${code}'`);
  return `/** The codes that the service refuses with. */\nexport type ErrorCode =\n${lines.join('\n')};\n`;
};

const generate = async (): Promise<string> => {
  const document = partnersDocument();
  const nodes = await openapiTS(structuredClone(document) as never, {
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
  });
  const types = astToString(nodes.filter((node) => !UNUSED.includes(nameOf(node))));
  return [NOTE, endpointsOf(document), '\n', errorCodesOf(document), '\n', types].join('');
};

const made = await generate();
if (!process.argv.includes('--check')) writeFileSync(FILE, made);
else if (made !== readFileSync(FILE, 'utf8')) {
  process.stderr.write('clients/typescript: the API has changed: npm run generate:typescript\n');
  process.exitCode = 1;
}
