/** What the operations of all contexts share in the OpenAPI document. */
import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { jsonResponse, refusalResponses } from '../http/contract/responses.ts';
import { requestId, timestamp } from '../http/contract/schemas/common.ts';
import type { ErrorCode } from '../http/errors/error-catalog.ts';

/** Values that several examples show. */
export const REQUEST = '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11';
export const CURSOR = 'AAAAAAAAAAtO3kq6gY2i0mVbVt1yQ8bC';

interface Described
  extends Pick<ZodOpenApiOperationObject, 'summary' | 'description' | 'requestParams' | 'requestBody'> {
  readonly responses: ZodOpenApiResponsesObject;
  /** What it can be refused with. */
  readonly codes: readonly ErrorCode[];
  /** Marks an operation that is an addition to the contract (decisions, Additions). */
  readonly addition?: true;
}

/** Makes the operations of a tag. */
export const operationsOf =
  (tag: string) =>
  (
    operationId: string,
    { responses, codes, addition, ...described }: Described,
  ): ZodOpenApiOperationObject => ({
    operationId,
    tags: [tag],
    ...described,
    ...(addition && { 'x-doorplate-addition': true }),
    responses: { ...responses, ...refusalResponses(codes) },
  });

/** A response with JSON, and with the header that says how long it may be kept. */
export const storableJson = <Schema extends z.ZodType>(
  description: string,
  schema: Schema,
  examples: Readonly<Record<string, z.output<Schema>>>,
): ZodOpenApiResponseObject => jsonResponse(description, schema, examples, { always: ['Cache-Control'] });

/** The response to a deletion. `id`: that of the example. */
export function deletedResponse(schemaId: string, id: string): ZodOpenApiResponseObject {
  const schema = z
    .object({ id: z.uuid(), deleted: z.literal(true), deleted_at: timestamp, request_id: requestId })
    .meta({ id: schemaId });
  const deleted = { id, deleted: true as const, deleted_at: '2026-03-16T08:00:00.000Z', request_id: REQUEST };
  return storableJson('It is deleted.', schema, { deleted });
}

/** A required JSON body. */
export const jsonBody = (schema: z.ZodType): ZodOpenApiRequestBodyObject => ({
  required: true,
  content: { 'application/json': { schema } },
});
