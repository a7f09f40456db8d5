import { documentedRoutes } from '../../bin/api.ts';
import { openApiDocument } from '../../http/docs/openapi.ts';

/** Prints the OpenAPI document, for its linter and for generating clients: `node bench/checks/print-openapi.ts`. */

const publicUrl = process.env.PUBLIC_URL ?? 'http://localhost:3000';
process.stdout.write(`${JSON.stringify(openApiDocument(documentedRoutes(), { publicUrl }), null, 2)}\n`);
