import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { LAG_SAMPLE_MS } from '../../platform/telemetry/metrics.ts';
import { type Analyst, analystOf } from '../support/analysts.ts';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

const file = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
}
const alerts: Alert[] = parse(file('deploy/prometheus/alerts.yml')).groups.flatMap(
  (group: { rules: Alert[] }) => group.rules,
);

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const panels: Panel[] = JSON.parse(file('deploy/grafana/doorplate.json')).panels;
const runbook = file('docs/runbook.md');

/** The labels that Prometheus adds to every series, and the series that it makes itself. */
const ADDED = ['instance', 'job', 'le'];
const OWN: Readonly<Record<string, readonly string[]>> = {
  up: [],
  ALERTS: ['alertname', 'alertstate', 'severity'],
};

/** The series of an exposition: labels by metric. */
type Shown = Map<string, Readonly<Record<string, string>>[]>;
const shownIn = (exposition: string): Shown => {
  const shown: Shown = new Map(
    Object.entries(OWN).map(([name, labels]) => [name, [Object.fromEntries(labels.map((l) => [l, '']))]]),
  );
  for (const line of exposition.split('\n').filter((text) => text !== '' && !text.startsWith('#'))) {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]);
    shown.set(name, [...(shown.get(name) ?? []), Object.fromEntries(pairs)]);
  }
  return shown;
};

/** The metrics of an expression with the labels that they must have and the labels that it groups by. */
const askedIn = (expression: string) => {
  const text = expression.replaceAll('$__rate_interval', '5m');
  const metrics: { name: string; matchers: { label: string; equal: string | null }[] }[] = [];
  const grouped: string[] = [];
  const textOf = ({ from, to }: { from: number; to: number }) => text.slice(from, to);
  parser.parse(text).iterate({
    enter: (node) => {
      if (node.type.isError) throw new Error(`no PromQL at ${node.from}: ${text}`);
      const inner = node.node;
      if (node.name === 'VectorSelector') {
        metrics.push({ name: textOf(inner.getChild('Identifier') ?? inner), matchers: [] });
      }
      if (node.name === 'UnquotedLabelMatcher') {
        const [label, op, value] = [
          inner.getChild('LabelName'),
          inner.getChild('MatchOp'),
          inner.getChild('StringLiteral'),
        ];
        if (!label || !op || !value) throw new Error(`no matcher at ${node.from}: ${text}`);
        const equal = textOf(op) === '=' ? textOf(value).slice(1, -1) : null;
        metrics.at(-1)?.matchers.push({ label: textOf(label), equal });
      }
      if (node.name === 'GroupingLabels') grouped.push(...inner.getChildren('LabelName').map(textOf));
    },
  });
  return { metrics, grouped };
};

let service: Service;
let shown: Shown;
let exposition: string;
beforeAll(async () => {
  service = await startServiceOnDatabase();
  const key = service.demoKey();
  await service.call('POST', '/v1/lookup', { key, body: { ip: '8.8.8.8' } });
  await service.call('GET', '/v1/lookup?ip=8.8.8.8', { key });
  const asked = async () => (await fetch(`http://127.0.0.1:${service.env.OPS_PORT}/metrics`)).text();
  const waited = [
    'doorplate_webhook_endpoints{',
    'doorplate_expiry_blocked_rows{',
    'doorplate_projection_lag_seconds{',
  ];
  exposition = await eventually(
    'every listener shows metrics',
    asked,
    (text) =>
      waited.every((name) => text.includes(name)) &&
      /enrichment_attempts_total\{outcome="completed"\} 1/.test(text) &&
      !/doorplate_(led|reachable)\{.*\} 0/.test(text),
  );
  shown = shownIn(exposition);
}, 60_000);
afterAll(() => service?.remove());

const labelsOf = (metric: string): string[] => [
  ...new Set((shown.get(metric) ?? []).flatMap((series) => Object.keys(series))),
];

/** The unknown parts of an expression; [] when all are known. */
const missingIn = (expression: string): string[] => {
  const { metrics, grouped } = askedIn(expression);
  const known = [...ADDED, ...metrics.flatMap(({ name }) => labelsOf(name))];
  return [
    ...(metrics.length === 0 ? [`no metric: ${expression}`] : []),
    ...metrics.flatMap(({ name, matchers }) => [
      ...(shown.has(name) ? [] : [name]),
      ...matchers
        .filter(({ label }) => ![...labelsOf(name), ...ADDED].includes(label))
        .map(({ label }) => `${name}{${label}}`),
      ...matchers
        .filter(({ label, equal }) => equal !== null && !ADDED.includes(label) && !(name in OWN))
        .filter(({ label, equal }) => !(shown.get(name) ?? []).some((series) => series[label] === equal))
        .map(({ label, equal }) => `${name}{${label}="${equal}"}`),
    ]),
    ...grouped.filter((label) => !known.includes(label)).map((label) => `by (${label}): ${expression}`),
  ];
};

/** Labels in a legend or an annotation. */
const labelsIn = (template: string, pattern: RegExp): string[] =>
  [...template.matchAll(pattern)].map(([, label]) => label as string);
const hasLabels = (expression: string, labels: readonly string[]): boolean => {
  const { grouped, metrics } = askedIn(expression);
  // A summed series keeps the labels that it is grouped by.
  const aggregated = /^(sum|max|min|count|histogram_quantile)\b/.test(expression);
  const known = aggregated ? grouped : [...ADDED, ...metrics.flatMap(({ name }) => labelsOf(name))];
  return labels.every((label) => known.includes(label));
};

describe('the expression check of this test', () => {
  it('finds unknown metrics and labels', () => {
    expect(missingIn('sum(rate(doorplate_nothing_total[5m])) > 1')).toEqual(['doorplate_nothing_total']);
    expect(missingIn('max by (nome) (doorplate_led{nime="x"})')).toHaveLength(3);
    expect(missingIn('doorplate_webhook_endpoints{state="asleep"}')).toHaveLength(1);
    expect(() => missingIn('sum(rate(')).toThrow('no PromQL');
    expect(hasLabels('max by (name) (doorplate_led)', ['instance'])).toBe(false);
  });
});

describe('deploy/prometheus/alerts.yml', () => {
  it.each(alerts)('$alert uses metrics that the operations listener shows', ({ expr, annotations }) => {
    expect(missingIn(expr)).toEqual([]);
    for (const text of Object.values(annotations)) {
      const labels = labelsIn(text, /\$labels\.(\w+)/g);
      expect(hasLabels(expr, labels), `${labels}`).toBe(true);
    }
  });

  it.each(alerts)(
    '$alert names the problem, its severity, and the page to read',
    ({ alert, labels, annotations }) => {
      // Of a condition the label says it.
      expect(['critical', 'warning', 'info', expect.stringContaining('$labels.severity')]).toContainEqual(
        labels.severity,
      );
      expect(annotations.summary.length).toBeGreaterThan(10);
      expect(annotations.description.length).toBeGreaterThan(20);
      const [page, anchor] = annotations.runbook_url.replace('{{ $labels.code }}', 'condition').split('#');
      expect(page).toBe('docs/runbook.md');
      const row = runbook.split('\n').find((line) => line.includes(`<a id="${anchor}"></a>`));
      expect(row).toContain(`\`${alert}\``);
    },
  );

  it('takes the time between two samples off the lag of the event loop, as the board does', () => {
    const lag = `doorplate_nodejs_eventloop_lag_p99_seconds - ${LAG_SAMPLE_MS / 1_000}`;
    const shownBy = [...alerts, ...panels.flatMap(({ targets }) => targets)].map(({ expr }) => expr);
    const ofLag = shownBy.filter((expr) => expr.includes('eventloop_lag'));
    expect(ofLag).toHaveLength(2);
    for (const expr of ofLag) expect(expr).toMatch(new RegExp(`^${lag}( >|$)`));
  });

  it('names each alert once, and the runbook lists the same alerts', () => {
    const names = alerts.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    expect(
      [...runbook.matchAll(/<a id="[\w-]+"><\/a>`(Doorplate\w+)`/g)].map(([, name]) => name).toSorted(),
    ).toEqual(names.toSorted());
  });
});

describe('deploy/prometheus/prometheus.yml', () => {
  it('finds a missing api and any number of other processes', () => {
    const { services } = parse(file('docker-compose.yml'), { merge: true });
    const [{ static_configs, dns_sd_configs }] = parse(
      file('deploy/prometheus/prometheus.yml'),
    ).scrape_configs;
    const fixed = static_configs[0].targets.map((target: string) => target.replace(':3001', ''));
    expect(fixed).toEqual(['api']);
    const ours = Object.keys(services).filter((name) => services[name].image === 'doorplate');
    expect([...fixed, ...dns_sd_configs[0].names].toSorted()).toEqual(ours.toSorted());
  });
});

describe('deploy/grafana/doorplate.json', () => {
  it.each(panels)('$title shows metrics of the operations listener', ({ targets }) => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { expr, legendFormat } of targets) {
      expect(missingIn(expr)).toEqual([]);
      expect(hasLabels(expr, labelsIn(legendFormat, /\{\{(\w+)\}\}/g)), legendFormat).toBe(true);
    }
  });
});

interface BusinessPanel {
  readonly type: string;
  readonly title: string;
  readonly datasource: { readonly uid: string };
  readonly targets: readonly { readonly rawSql: string; readonly format: string }[];
}
const businessPanels: BusinessPanel[] = JSON.parse(file('deploy/grafana/business.json')).panels;

/** Replaces Grafana's macro as its data source for PostgreSQL does. */
const withTimes = (sql: string): string =>
  sql.replaceAll(
    /\$__timeFilter\(([\w.]+)\)/g,
    "$1 BETWEEN '2026-01-01T00:00:00Z' AND '2026-12-31T00:00:00Z'",
  );

describe('deploy/grafana/business.json', () => {
  let analyst: Analyst;
  beforeAll(async () => {
    analyst = await analystOf(service.env.DATABASE_URL ?? '');
  });
  afterAll(() => analyst.leave());

  it.each(businessPanels)(
    '$title is answered to an analyst, in the time shown',
    async ({ type, targets, datasource }) => {
      const { datasources } = parse(file('deploy/grafana/provisioning/datasources/analytics.yml'));
      expect(datasources.map(({ uid }: { uid: string }) => uid)).toEqual([datasource.uid]);
      expect(targets).toHaveLength(1);
      for (const { rawSql, format } of targets) {
        expect(rawSql).toContain('$__timeFilter(');
        const { fields } = await analyst.db.query(withTimes(rawSql));
        const names = fields.map(({ name }) => name);
        if (type === 'timeseries') expect(names).toEqual(['time', 'metric', expect.any(String)]);
        expect(format).toBe(type === 'timeseries' ? 'time_series' : 'table');
      }
    },
  );

  it('is shown by the profile, as the first board is', () => {
    const { services } = parse(file('docker-compose.yml'), { merge: true });
    for (const board of ['doorplate', 'business']) {
      expect(services.grafana.volumes).toContain(
        `./deploy/grafana/${board}.json:/etc/grafana/boards/${board}.json:ro`,
      );
    }
  });
});

describe('docs/runbook.md', () => {
  it('lists every metric with its labels', () => {
    const listed = [...runbook.matchAll(/`(doorplate_\w+?)(?:\{([\w,]*)\})?`/g)].map(
      ([, name, labels]) => `${name}{${labels ?? ''}}`,
    );
    const families = [...exposition.matchAll(/^# TYPE (doorplate_(?!process_|nodejs_)\w+) (\w+)$/gm)];
    const all = families.map(([, name = '', type]) => {
      const labels = labelsOf(type === 'histogram' ? `${name}_count` : name);
      return `${name}{${labels.join(',')}}`;
    });
    expect(all.length).toBeGreaterThan(10);
    expect(all.filter((metric) => !listed.includes(metric))).toEqual([]);
    const names = new Set(families.map(([, name]) => name));
    expect(listed.filter((metric) => !names.has(metric.split('{')[0] ?? ''))).toEqual([]);
  });
});
