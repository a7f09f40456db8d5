/** Prints the OpenAPI document for the linter and for whoever generates clients: `node http/print-openapi.ts`. */
import { documentedRoutes } from './documented-routes.ts';
import { openApiDocument } from './openapi.ts';

const publicUrl = process.env.PUBLIC_URL ?? 'http://localhost:3000';
process.stdout.write(`${JSON.stringify(openApiDocument(documentedRoutes, { publicUrl }), null, 2)}\n`);
