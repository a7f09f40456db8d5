import type { ApiRequest } from '../http/route.ts';
import type { Api, DashboardUser, ErrorAnswer } from './api.ts';

/** A request of a page by somebody who is logged in. */
export interface Visit {
  readonly request: ApiRequest;
  readonly user: DashboardUser;
  /** What the browser keeps of the login. */
  readonly token: string;
  /** What every form carries that changes something. */
  readonly csrf: string;
  readonly query: URLSearchParams;
  /** Empty for a GET. */
  readonly form: URLSearchParams;
  /** The partners' API, as this user. */
  readonly api: Api;
}

/** The text of a form's field without the blanks around it; '' where it is not there. */
export const textOf = (visit: Visit, name: string): string => visit.form.get(name)?.trim() ?? '';

/** What a page shows of a refusal: null, nothing was refused. */
export type Refused = ErrorAnswer | null;
