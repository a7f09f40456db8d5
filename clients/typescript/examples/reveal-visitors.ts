// Reveals every session once, resumes where it stopped, and may be killed at any moment without a second unit.
// DOORPLATE_URL=… DOORPLATE_API_KEY=… node reveal-visitors.ts state.json
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createClient, DoorplateError, newIdempotencyKey, type SessionPreview } from 'doorplate-client';

interface State {
  cursor?: string;
  /** Idempotency keys of the page at the cursor, by session: saved before they are used. */
  keys: Record<string, string>;
}

const { DOORPLATE_URL = '', DOORPLATE_API_KEY = '' } = process.env;
const [file = 'state.json'] = process.argv.slice(2);
const client = createClient({ baseUrl: DOORPLATE_URL, apiKey: DOORPLATE_API_KEY });

const state: State = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { keys: {} };
const save = (): void => {
  writeFileSync(`${file}.new`, JSON.stringify(state));
  renameSync(`${file}.new`, file);
};

const reveal = async ({ session_id, visitor_country }: SessionPreview, idempotencyKey: string) => {
  const { receipt } = await client.reveal(session_id, { idempotencyKey });
  const { result, billable_units } = receipt;
  console.log(
    JSON.stringify({ session_id, visitor_country, company: result.company?.name ?? null, billable_units }),
  );
};

/** Sessions that have expired, or whose tracker was deleted: refused for ever, and not charged. */
const skipUnrevealable = (error: unknown): void => {
  if (!(error instanceof DoorplateError) || error.outcome !== 'refused' || error.status !== 410) throw error;
  console.error(error.message);
};

for await (const page of client.sessions({ cursor: state.cursor }).pages()) {
  for (const { session_id } of page.items) state.keys[session_id] ??= newIdempotencyKey();
  save();
  await Promise.all(
    page.items.map((session) =>
      reveal(session, state.keys[session.session_id] ?? '').catch(skipUnrevealable),
    ),
  );
  state.keys = {};
  if (page.cursor) state.cursor = page.cursor;
  save();
}
