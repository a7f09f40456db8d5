import type { ZodOpenApiOperationObject } from 'zod-openapi';
import type { PartnerRequest, PartnerRoute, Reply } from './route.ts';

/** Makes routes about a partner's data, of which `common` is the same, and whose handlers get `deps` with the request. */
export const partnerRoutes =
  <Deps>(deps: Deps, common: Pick<PartnerRoute, 'bodyLimit' | 'budget' | 'unavailable'>) =>
  (
    method: PartnerRoute['method'],
    path: string,
    body: PartnerRoute['body'],
    operation: ZodOpenApiOperationObject,
    handle: (deps: Deps, request: PartnerRequest) => Reply | Promise<Reply>,
  ): PartnerRoute => ({
    ...common,
    access: 'partner',
    method,
    path,
    body,
    operation,
    handle: (request) => handle(deps, request),
  });
