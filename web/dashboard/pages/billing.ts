import type { Reply } from '../../../http/contract/route.ts';
import { fileAnswer, redirectAfterPost } from '../answers.ts';
import type { Visit } from '../api.ts';
import { count, counted, form, html, nothingYet, table } from '../components.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

export interface Verdict {
  readonly began_at: string;
  /** null: it is still running, or a restart ended it. */
  readonly ended_at: string | null;
  /** null: it failed. */
  readonly report: null | {
    readonly months: readonly {
      readonly month: string;
      readonly entries: number;
      readonly units: number;
      readonly head_digest: string | null;
    }[];
    readonly units: number;
    readonly differences: readonly {
      readonly kind: string;
      readonly stream: string;
      readonly detail: string;
    }[];
  };
}

export interface BillingDeps {
  readonly months: (
    partnerId: string,
  ) => Promise<readonly { readonly month: string; readonly completed: number; readonly units: number }[]>;
  readonly verdict: (partnerId: string) => Promise<Verdict | null>;
  /** Begins an audit and waits for a moment, unless the last one is too recent or the ledger too large. */
  readonly audit: (partnerId: string) => Promise<'begun' | 'recent' | 'too-large'>;
}

const PATH = '/dashboard/billing';

/** Units by month, and whether the ledger proves them. */
export const billingPages = (deps: BillingDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => billing(deps, visit) },
  { method: 'GET', path: `${PATH}.csv`, handle: (visit) => csv(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/audit`,
    needs: 'member',
    handle: async ({ user }) => redirectAfterPost(PATH, `audit-${await deps.audit(user.partner_id)}`),
  },
];

async function billing({ months, verdict }: BillingDeps, visit: Visit): Promise<Reply> {
  const { partner_id } = visit.user;
  const [listed, audited] = await Promise.all([months(partner_id), verdict(partner_id)]);
  return show(visit, {
    title: 'Billing',
    section: 'Usage and billing',
    tab: PATH,
    content: html`${
      listed.length === 0
        ? nothingYet(
            'No units yet',
            html`A unit is recorded when a reveal finds something. Reveal a
            <a href="/dashboard/sessions">session</a>, here or through the API.`,
          )
        : html`${table(
            'Units by month (UTC) in which the reveal completed',
            ['Month', 'Reveals completed', 'Units'],
            listed.map(({ month, completed, units }) => [month, count(completed), count(units)]),
          )}<p><a class="button quiet" href="${PATH}.csv">Download as CSV</a></p>`
    }
    <section><h2>Audit</h2>
      <p>Replays your ledger entry by entry and holds it against receipts and usage. Whoever runs the service can do the
        same with <code>doorplate audit billing</code>.</p>
      ${audited === null ? html`<p>Not audited yet.</p>` : verdictOf(visit, audited)}
      ${form(visit, `${PATH}/audit`, html`<button>Audit now</button>`)}
    </section>`,
  });
}

function verdictOf(visit: Visit, { began_at, ended_at, report }: Verdict) {
  if (ended_at === null) {
    return html`<p class="notice">An audit began ${visit.time(began_at)}. <a class="reload" href="${PATH}">Look again</a></p>`;
  }
  if (report === null) {
    return html`<p class="alert">The audit of ${visit.time(began_at)} did not come to its end. Try it again.</p>`;
  }
  const { differences, units, months } = report;
  return html`${
    differences.length === 0
      ? html`<p class="said"><strong>No differences.</strong> ${counted(units, 'unit')} proven, ${visit.time(ended_at)}.</p>`
      : html`<p class="alert"><strong>${counted(differences.length, 'difference')}</strong> found, ${visit.time(ended_at)}. Tell whoever
          runs the service.</p>${table(
            'Differences',
            ['Kind', 'Stream', 'Detail'],
            differences
              .slice(0, 100)
              .map(({ kind, stream, detail }) => [kind, html`<code>${stream}</code>`, detail]),
          )}`
  }
  ${
    months.length > 0 &&
    html`<details><summary>The ledger by month, with digests to note down</summary>${table(
      'Ledger by month',
      ['Month', 'Entries', 'Units', 'Digest of its last entry'],
      months.map(({ month, entries, units, head_digest }) => [
        month,
        count(entries),
        count(units),
        html`<code>${head_digest ?? '–'}</code>`,
      ]),
    )}</details>`
  }`;
}

async function csv({ months }: BillingDeps, { user }: Visit): Promise<Reply> {
  const rows = (await months(user.partner_id)).map(
    ({ month, completed, units }) => `${month},${completed},${units}`,
  );
  return fileAnswer(
    'doorplate-units.csv',
    'text/csv; charset=utf-8',
    `${['month,completed_reveals,units', ...rows].join('\r\n')}\r\n`,
  );
}
