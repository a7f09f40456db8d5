/** What the types of the OpenAPI document make of one operation: its request, and the body of its success. */
import type { endpoints, operations } from './generated.ts';

/** The document's `operationId`. */
export type OperationId = keyof typeof endpoints;

type Json<Content> = Content extends { content: { 'application/json': infer Body } } ? Body : never;

type BodyPart<Operation> = Operation extends { requestBody: infer Body }
  ? { readonly body: Json<Body> }
  : { readonly body?: never };

/** As the API's reference spells them. */
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

/** POSTs that come to the same however often they are sent; GET, PATCH and DELETE do anyway. */
const REPEATABLE: ReadonlySet<OperationId> = new Set<OperationId>([
  'requestLookup',
  'revealSession',
  'enableTracker',
  'deleteTracker',
  'createDomain',
]);

/** Whether it may be sent again when nobody knows what became of it. */
export const isRepeatable = (id: OperationId, method: string): boolean =>
  method !== 'POST' || REPEATABLE.has(id);
