/** One operation's request and the body of its success, derived from the OpenAPI types. */
import type { endpoints, operations } from './generated.ts';

/** The document's `operationId`. */
export type OperationId = keyof typeof endpoints;

type Json<Content> = Content extends { content: { 'application/json': infer Body } } ? Body : never;

type BodyPart<Operation> = Operation extends { requestBody: infer Body }
  ? { readonly body: Json<Body> }
  : { readonly body?: never };

/** Spelled as in the API's reference. */
export type RequestOf<Id extends OperationId> = Pick<
  operations[Id]['parameters'],
  'path' | 'query' | 'header'
> &
  BodyPart<operations[Id]>;

type Responses<Id extends OperationId> = operations[Id]['responses'];

/** The body of any success. */
export type BodyOf<Id extends OperationId> = {
  [Status in keyof Responses<Id>]: Json<Responses<Id>[Status]>;
}[keyof Responses<Id>];

/** Idempotent POSTs; GET, PATCH and DELETE always are. */
const REPEATABLE: ReadonlySet<OperationId> = new Set<OperationId>([
  'requestLookup',
  'revealSession',
  'enableTracker',
  'deleteTracker',
  'createDomain',
  'recoverWebhook',
]);

/** Whether it may be repeated after an unknown outcome. */
export const isRepeatable = (id: OperationId, method: string): boolean =>
  method !== 'POST' || REPEATABLE.has(id);
