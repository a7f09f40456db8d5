import type { Reply } from '../../http/contract/route.ts';
import { redirectAfterPost } from './answers.ts';
import type { ErrorAnswer, PageContext, Refused, Role } from './api.ts';
import { type AskPage, ask as askPage } from './layout.ts';
import { filled, get, type PageRoute, post } from './routes.ts';

export type Done = { readonly ok: true } | ErrorAnswer;
export type Found<T> = { readonly ok: true; readonly body: T } | ErrorAnswer;

type Answer = Reply | Promise<Reply>;

interface ActionOptions<T> {
  readonly needsProof?: boolean;
  /** What is asked first, on a page with the action's path. Without it the form of another page is enough. */
  readonly ask?: (
    page: PageContext,
    found: T,
  ) => Omit<AskPage, 'action' | 'back'> & { readonly back?: string };
  /** The page that has the message afterwards; default: the thing's own. */
  readonly leadsTo?: string;
  /** What shows a refusal; default: the thing's page. */
  readonly refusedOn?: 'question' | 'list';
}

/** What can be done with one thing. */
interface Action<T> extends ActionOptions<T> {
  readonly name: string;
  readonly needs: Role;
  readonly change: (page: PageContext) => Promise<Done>;
  readonly done: string;
}

/**
 * Describes an action. Its name follows the path of the thing's page; '' is that path itself. `done`: the message afterwards
 * (`layout.ts`).
 */
export const action = <T>(
  name: string,
  needs: Role,
  change: Action<T>['change'],
  done: string,
  options: ActionOptions<T> = {},
): Action<T> => ({ name, needs, change, done, ...options });

/** One kind of thing that a partner has: its page and its actions. */
export interface Resource<T> {
  /** Path of its page, with its parameters. */
  readonly path: string;
  /** The role that sees its page. */
  readonly needs?: Role;
  readonly find: (page: PageContext) => Promise<Found<T>>;
  /** Stands in place of its page where it is not found: its list. `refused`: what an action was refused for before. */
  readonly missing: (page: PageContext, why: ErrorAnswer, refused: Refused) => Answer;
  readonly show: (page: PageContext, found: T, refused: Refused) => Answer;
  readonly actions: readonly Action<T>[];
}

/** Shows the page of a thing, or what stands in its place. */
export async function showOne<T>(
  { find, missing, show }: Resource<T>,
  page: PageContext,
  refused: Refused = null,
): Promise<Reply> {
  const found = await find(page);
  return found.ok ? show(page, found.body, refused) : missing(page, found, refused);
}

/** The routes of a kind of thing: its page, its actions, and the questions before them. */
export function resourceRoutes<T>(resource: Resource<T>): PageRoute[] {
  const { path, needs = 'read-only', find, missing, show, actions } = resource;

  const routesOf = ({ name, needs, ask, change, done, ...options }: Action<T>): PageRoute[] => {
    const at = name === '' ? path : `${path}/${name}`;
    const { needsProof = false, leadsTo = path, refusedOn } = options;

    async function question(page: PageContext, refused: Refused = null): Promise<Reply> {
      const found = await find(page);
      if (!found.ok) return missing(page, found, refused);
      if (ask === undefined) return show(page, found.body, refused);
      const { params } = page.request;
      const asked = { back: filled(path, params), ...ask(page, found.body) };
      return askPage(page, { ...asked, refused, asksForProof: needsProof, action: filled(at, params) });
    }

    async function act(page: PageContext): Promise<Reply> {
      const changed = await change(page);
      if (changed.ok) return redirectAfterPost(filled(leadsTo, page.request.params), done);
      if (refusedOn === 'list') return missing(page, changed, changed);
      return refusedOn === 'question' ? question(page, changed) : showOne(resource, page, changed);
    }

    return [...(ask ? [get(at, question, { needs })] : []), post(at, needs, act, { needsProof })];
  };

  return [get(path, (page) => showOne(resource, page), { needs }), ...actions.flatMap(routesOf)];
}
