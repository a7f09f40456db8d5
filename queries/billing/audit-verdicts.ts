import type pg from 'pg';

export interface AuditDifference {
  readonly kind: string;
  readonly detail?: unknown;
}

/** A partner of whose ledger the last audit that a dashboard user asked for found differences. */
export interface FailedAudit {
  readonly partner_id: string;
  readonly differences: readonly AuditDifference[];
}

export async function listFailedAudits(pool: pg.Pool): Promise<FailedAudit[]> {
  const { rows } = await pool.query<FailedAudit>(
    `select partner_id, report -> 'differences' as differences from work.audit_verdict
     where json_array_length(report -> 'differences') > 0`,
  );
  return rows;
}
