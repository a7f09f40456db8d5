/** The embedded PostgreSQL cannot run. The message is one line that tells the operator what to change. */
export class EmbeddedPostgresError extends Error {}

/** Returns the message of any thrown value, without a stack. */
export const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the code of a failed system call, such as `EACCES`; undefined for other errors. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
