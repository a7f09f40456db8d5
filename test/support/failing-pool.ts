import type pg from 'pg';

/** A pool that rejects this many runs of one prepared statement. */
export const failing = (pool: pg.Pool, statement: string, times: number): pg.Pool => {
  let left = times;
  return new Proxy(pool, {
    get: (target, property) => {
      if (property !== 'query') return Reflect.get(target, property);
      return (query: pg.QueryConfig, values?: unknown[]) => {
        if (query.name !== statement || left === 0) return target.query(query, values);
        left -= 1;
        return Promise.reject(new Error('the database is away'));
      };
    },
  });
};
