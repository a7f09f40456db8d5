import type pg from 'pg';

/** PostgreSQL or a rule of the product refuses the grant. The message is for the operator. */
export class GrantRefused extends Error {}

export const runAll = async (db: pg.Client, statements: readonly string[]): Promise<void> => {
  for (const statement of statements) {
    await db.query(statement).catch((error: unknown) => {
      if ((error as { code?: string }).code !== '42501') throw error;
      const why = `PostgreSQL does not let ${db.user} do this: ${(error as Error).message}`;
      const instead = statements
        .map((each) => `  ${each.replace(/ password '.*'/, " password '…'")};`)
        .join('\n');
      throw new GrantRefused(`${why}. A superuser can, in the database ${db.database}:\n${instead}`);
    });
  }
};

export const runIfAllowed = async (db: pg.Client, statement: string): Promise<boolean> => {
  await db.query('savepoint more');
  try {
    await db.query(statement);
    return true;
  } catch (error) {
    // XX000: a concurrent grant has changed the same row.
    if (!['42501', 'XX000'].includes((error as { code?: string }).code ?? '')) throw error;
    await db.query('rollback to more');
    return false;
  }
};
