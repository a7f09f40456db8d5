import { z } from 'zod';
import 'zod-openapi';
import { requestId } from './common.ts';
import { companySignals } from './company-signals.ts';

/** The body of every refusal. */
export const errorBody = z
  .object({
    error: z.object({
      code: z.string().meta({ description: 'One of the codes of the error catalogs.' }),
      message: z.string().meta({ description: 'For people; its wording may change.' }),
    }),
    request_id: requestId,
    company_signals: companySignals.optional(),
  })
  .meta({ id: 'Error', description: 'Why a request was not carried out. Never a negative company match.' });
