import type pg from 'pg';

/** A pool that rejects the first run of one prepared statement. */
export const failingOnce = (pool: pg.Pool, statement: string): pg.Pool => {
  let isFirst = true;
  return new Proxy(pool, {
    get: (target, property) => {
      if (property !== 'query') return Reflect.get(target, property);
      return (query: pg.QueryConfig, values?: unknown[]) => {
        if (query.name !== statement || !isFirst) return target.query(query, values);
        isFirst = false;
        return Promise.reject(new Error('the database is away'));
      };
    },
  });
};
