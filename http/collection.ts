/** The API as a collection of requests for Postman, Bruno, Insomnia and the like, made from the OpenAPI document. */
import type { Route } from './route.ts';
import { staticRoute } from './static-route.ts';

/** The parts of an OpenAPI document that a collection needs. */
interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface MediaType {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly example?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
}

const FORMAT = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';
/** Any UUID that a request needs: the variable of its name, or a new one for each request. */
const NEW_UUID = '{{$guid}}';

/** GET /docs/collection.json: a Postman collection v2.1, with the key and ids as variables. */
export const collectionRoute = (document: object): Route =>
  staticRoute('/docs/collection.json', 300, {
    body: JSON.stringify(collectionOf(document as Document), null, 1),
    headers: {
      'content-type': 'application/json',
      'content-disposition': 'attachment; filename="doorplate.postman_collection.json"',
    },
  });

const collectionOf = (document: Document) => {
  const { info, servers, tags, paths } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const ids = new Set(
    operations.flatMap(({ operation }) => parametersIn('path', operation).map(({ name }) => name)),
  );
  return {
    info: { name: `${info.title} ${info.version}`, description: info.description, schema: FORMAT },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{api_key}}', type: 'string' }] },
    variable: [
      { key: 'base_url', value: servers[0]?.url ?? '' },
      { key: 'api_key', value: '' },
      ...[...ids].map((key) => ({ key, value: '' })),
    ],
    item: tags.map(({ name, description }) => ({
      name,
      description,
      item: operations
        .filter(({ operation }) => operation.tags.includes(name))
        .map(({ path, method, operation }) => requestOf(document, path, method, operation)),
    })),
  };
};

const requestOf = (document: Document, path: string, method: string, operation: Operation) => {
  const segments = path
    .slice(1)
    .replaceAll(/\{(\w+)\}/g, ':$1')
    .split('/');
  const query = parametersIn('query', operation).map((parameter) => ({
    key: parameter.name,
    value: String(exampleOf(document, parameter.schema, parameter.name)),
    description: parameter.description,
    disabled: !parameter.required,
  }));
  const shown = query.filter(({ disabled }) => !disabled).map(({ key, value }) => `${key}=${value}`);
  const body = operation.requestBody?.content['application/json'];
  return {
    name: operation.summary,
    request: {
      method: method.toUpperCase(),
      description: operation.description,
      ...(operation.security?.length === 0 ? { auth: { type: 'noauth' } } : {}),
      url: {
        raw: `{{base_url}}/${segments.join('/')}${shown.length > 0 ? `?${shown.join('&')}` : ''}`,
        host: ['{{base_url}}'],
        path: segments,
        query,
        variable: parametersIn('path', operation).map(({ name, description }) => ({
          key: name,
          value: `{{${name}}}`,
          description,
        })),
      },
      header: [
        ...parametersIn('header', operation).map(({ name }) => ({ key: name, value: NEW_UUID })),
        ...(body ? [{ key: 'Content-Type', value: 'application/json' }] : []),
      ],
      ...(body ? { body: { mode: 'raw', raw: JSON.stringify(bodyOf(document, body), null, 2) } } : {}),
    },
  };
};

const parametersIn = (where: Parameter['in'], { parameters = [] }: Operation): readonly Parameter[] =>
  parameters.filter((parameter) => parameter.in === where);

const bodyOf = (document: Document, { schema, examples }: MediaType): unknown => {
  const [first] = Object.values(examples ?? {});
  return first === undefined ? exampleOf(document, schema) : first.value;
};

/** Returns a value of the schema: its example, or the examples of its parts. */
const exampleOf = (document: Document, schema: Schema, name = ''): unknown => {
  if (schema.$ref !== undefined) {
    const target = document.components.schemas[schema.$ref.replace('#/components/schemas/', '')];
    return target && exampleOf(document, target, name);
  }
  if (schema.example !== undefined) return schema.example;
  if (schema.format === 'uuid') return name === 'tracker_id' ? '{{tracker_id}}' : NEW_UUID;
  if (schema.enum) return schema.enum[0];
  if (schema.properties) {
    const required = Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name));
    return Object.fromEntries(required.map(([key, of]) => [key, exampleOf(document, of, key)]));
  }
  if (schema.items) return [exampleOf(document, schema.items)];
  if (schema.anyOf?.[0]) return exampleOf(document, schema.anyOf[0], name);
  return { string: '', integer: 0, number: 0, boolean: false, object: {} }[String(schema.type)] ?? null;
};
