// Which company is behind an address?
//   DOORPLATE_URL=… DOORPLATE_API_KEY=… node lookup.ts 8.8.8.8
import { createClient, DoorplateError } from 'doorplate-client';

const { DOORPLATE_URL = '', DOORPLATE_API_KEY = '' } = process.env;
const [ip = '8.8.8.8'] = process.argv.slice(2);
const client = createClient({ baseUrl: DOORPLATE_URL, apiKey: DOORPLATE_API_KEY });

try {
  const { match_type, company_found, company } = await client.lookup(ip, { deadlineMs: 60_000 });
  console.log(JSON.stringify({ ip, match_type, company_found, name: company?.name ?? null }));
} catch (error) {
  if (!(error instanceof DoorplateError)) throw error;
  // No failure means that there is no company.
  console.error(`${error.kind}, ${error.outcome}: ${error.message} (request ${error.requestId})`);
  process.exitCode = 1;
}
