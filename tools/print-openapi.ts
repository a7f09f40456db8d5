/** Prints the OpenAPI document, for its linter and for generating clients: `node tools/print-openapi.ts`. */

import { documentedRoutes } from '../bin/api-routes.ts';
import { openApiDocument } from '../http/docs/openapi.ts';

const publicUrl = process.env.PUBLIC_URL ?? 'http://localhost:3000';
process.stdout.write(`${JSON.stringify(openApiDocument(documentedRoutes(), { publicUrl }), null, 2)}\n`);
