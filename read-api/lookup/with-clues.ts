import { parametersOf } from '../../http/contract/parameters.ts';
import type { ApiRequest, KeyRequest, Reply } from '../../http/contract/route.ts';
import type { ShownCompany } from '../../http/contract/schemas/company.ts';
import type { CluesOf, CompanySignals } from '../../http/contract/schemas/company-signals.ts';

/** Statuses of answers that carry clues (contract, Company signals). */
const CARRYING: ReadonlySet<number> = new Set([200, 202, 404, 503]);

/**
 * Adds clues to the answer of an enabled key. They are read while it is being counted.
 * @param counted the answer once it is counted, or the refusal that replaces it
 */
export const withClues = async (
  request: KeyRequest,
  answer: Reply,
  counted: Promise<Reply>,
  cluesOf: CluesOf,
): Promise<Reply> => {
  const ask = (): Promise<CompanySignals> =>
    cluesOf(request.caller.partner_id, addressOf(request), companyIn(answer));
  const asked = CARRYING.has(answer.status) ? ask() : null;
  const final = await counted;
  if (!CARRYING.has(final.status) || typeof final.body !== 'string') return final;
  const signals = await (asked ?? ask());
  return { ...final, body: `${final.body.slice(0, -1)},"company_signals":${JSON.stringify(signals)}}` };
};

/** What the caller asked about, in the body of a POST or the query of a GET. */
const addressOf = ({ body, query }: ApiRequest): string | null => {
  if (body === undefined) return parametersOf(query).get('ip');
  const { ip } = (body ?? {}) as { ip?: unknown };
  return typeof ip === 'string' ? ip : null;
};

/** The company of a lookup that found one. Its answer is text by now, which is read again rather than kept twice. */
const companyIn = ({ status, body }: Reply): ShownCompany | null => {
  if (status !== 200 || typeof body !== 'string') return null;
  const { company_found, company } = JSON.parse(body) as {
    company_found: boolean;
    company: ShownCompany | null;
  };
  return company_found ? company : null;
};
