/** Shapes that every part of the API shares. Each schema is the OpenAPI document's component and a type. */
import { z } from 'zod';
import 'zod-openapi';

/** An instant as answers write it: UTC, ISO 8601, milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({ example: '2026-03-14T09:26:53.589Z' });

/** Never negative. */
export const count = z.int().min(0);

export const requestId = z.uuid().meta({
  description: 'The id of this request, also in `X-Request-ID`.',
  example: '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11',
});
