import type pg from 'pg';

/** What a provider answered on a UTC day. Counts of the last seconds may be missing. */
export interface ProviderDay {
  readonly provider: string;
  readonly budget_used: number;
  readonly calls: number;
  readonly failed: number;
  readonly not_asked: number;
  readonly company: number;
  readonly isp: number;
  readonly unclassified: number;
  readonly unknown: number;
  readonly taken: number;
  /** Mean duration of a call, milliseconds; null: there was none. */
  readonly mean_ms: number | null;
}

/** Reads the counts of a UTC day (`YYYY-MM-DD`), by provider. */
export const readProviderDay = async (pool: pg.Pool, day: string): Promise<ProviderDay[]> => {
  const { rows } = await pool.query<ProviderDay>(
    `select provider, budget_used, calls::float8, failed::float8, not_asked::float8, company::float8, isp::float8,
            unclassified::float8, unknown::float8, taken::float8,
            case when calls > 0 then round(duration_ms::numeric / calls, 1)::float8 end as mean_ms
     from work.provider_day, lateral (select company + isp + unclassified + unknown + failed as calls) c
     where day = $1::date order by provider`,
    [day],
  );
  return rows;
};
