import type { ApiRequest } from '../http/contract/route.ts';
import type { Api, ErrorAnswer, LoggedInUser } from './api.ts';

/** A request of a page by a logged-in user. */
export interface Visit {
  readonly request: ApiRequest;
  readonly user: LoggedInUser;
  /** The login's token in the browser's cookie. */
  readonly token: string;
  /** The CSRF token of every form that changes something. */
  readonly csrf: string;
  readonly query: URLSearchParams;
  /** Empty for a GET. */
  readonly form: URLSearchParams;
  readonly api: Api;
}

/** The trimmed text of a form's field; '' when it is missing. */
export const textOf = (visit: Visit, name: string): string => visit.form.get(name)?.trim() ?? '';

/** A refusal for a page; null: the call succeeded. */
export type Refused = ErrorAnswer | null;
