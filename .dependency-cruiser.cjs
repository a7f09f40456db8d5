// The rules of direction (docs/architecture.md): who may import whom. Type imports count like others.

const CONTEXTS = 'lookup|usage|trackers|sessions|reveals|billing|webhooks|partners|signals|domains';
/** Files of one context in any layer: the group is the context's name. */
const OF_A_CONTEXT = `^(?:domain|commands|projections|processors|read-api|write-api)/(${CONTEXTS})/`;
/** Both an answer and a webhook show a reveal's receipt. */
const RECEIPT = '^domain/reveals/reveal\\.ts$';
/** What answers look like, by context. */
const SCHEMAS = '^read-api/[^/]+/[^/]*schemas\\.ts$';
/** Named readers of read models, with the types of their rows; they stand beside the projection that writes these. */
const READERS = '^projections/[^/]+/[^/]+/[^/]*readers\\.ts$';
const PACKAGES = '^node_modules/';
/** The only files of the client with packages. */
const MCP_SERVER = '^clients/typescript/src/cli/mcp-(server|schemas)\\.ts$';
const PORT = '^event-store/port\\.ts$';
const TAIL = '^event-store/tail\\.ts$';

/** `layer` may import these paths and its own files, and nothing else of the house. */
const only = (name, layer, allowed, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: `^${layer}/` },
  to: { pathNot: [`^${layer}/`, PACKAGES, ...allowed], dependencyTypesNot: ['core'] },
});

/** None of `from` may import any of `to`. */
const never = (name, from, to, comment) => ({ name, comment, severity: 'error', from, to });

module.exports = {
  forbidden: [
    only('domain-knows-domain', 'domain', [], 'The domain is pure: it imports the domain alone.'),
    never(
      'domain-has-no-effects',
      { path: '^domain/' },
      {
        dependencyTypes: ['core', 'npm'],
        pathNot: ['^node_modules/(zod|ipaddr\\.js|immutable)/', '^(node:)?crypto$'],
      },
      'No clock, no randomness, no I/O: schemas, addresses, persistent maps and digests are all that it takes from outside.',
    ),
    only(
      'commands-know-domain-and-port',
      'commands',
      [
        '^domain/',
        PORT,
        '^platform/(clock/(clock|waiting)|limits/(coalesce|semaphore)|telemetry/spans)\\.ts$',
      ],
      "A command loads, decides and appends: it needs the domain, the event store's port, the clock, delays, shared calls, semaphores and traces.",
    ),
    only(
      'projections-know-events',
      'projections',
      ['^domain/[^/]+/events\\.ts$', '^domain/kernel/', '^queries/reads\\.ts$', PORT, TAIL, '^platform/'],
      'A read model is made of events, not of the rules that made these. Its readers stand beside it.',
    ),
    only(
      'processors-know-commands',
      'processors',
      ['^domain/', '^commands/', '^queries/', READERS, '^operations/', PORT, TAIL, '^platform/'],
      'A processor follows events and acts through commands; it is not part of a read model or a route.',
    ),
    only(
      'queries-know-tables',
      'queries',
      ['^domain/', '^platform/', '^http/(errors/failures|contract/route)\\.ts$', SCHEMAS],
      'What more than one layer asks of the read models; it changes nothing.',
    ),
    only(
      'conditions-know-readers',
      'operations',
      ['^domain/', '^queries/', READERS, '^platform/', SCHEMAS],
      'What can be wrong is read by narrow readers and told by others; it changes nothing.',
    ),
    only(
      'analytics-knows-sql-alone',
      'cli/analytics',
      ['^platform/(postgres/pool|csv)\\.ts$', '^http/contract/shell-text\\.ts$'],
      'It opens and exports views; what they are made of is nothing to it.',
    ),
    never(
      'read-api-knows-no-event-store',
      { path: '^read-api/' },
      { path: '^(event-store|processors|projections)/', pathNot: READERS },
      'A GET reads the read models.',
    ),
    never(
      'write-api-decides-without-tables',
      { path: '^write-api/' },
      { path: ['^projections/', '^node_modules/(pg|slonik|@types/pg)/'] },
      'What a write decides on is its stream.',
    ),
    never(
      'write-api-shares-answers-alone',
      { path: '^write-api/' },
      { path: '^read-api/', pathNot: '^read-api/[^/]+/[^/]*(answer|schemas)\\.ts$' },
      'A POST answers what a GET shows; it reads no tables.',
    ),
    never(
      'contexts-share-events-alone',
      { path: OF_A_CONTEXT },
      {
        path: OF_A_CONTEXT,
        pathNot: ['^[^/]+/$1/', '^domain/[^/]+/events\\.ts$', RECEIPT, SCHEMAS, READERS],
      },
      "A context imports another's events, schemas, receipts and readers, and nothing else of it.",
    ),
    never(
      'adapters-are-plugged-in-at-the-root',
      { pathNot: '^(bin|cli|test|bench|event-store/eventstoredb|event-store/postgres|platform/embedded)/' },
      { path: '^(event-store/eventstoredb|event-store/postgres|platform/embedded)/' },
      'Only bin/, cli/, tests and benchmarks know which adapter there is.',
    ),
    never(
      'adapters-know-no-other-adapter',
      { path: '^(event-store/eventstoredb|event-store/postgres|platform/embedded)/' },
      { path: '^(event-store/eventstoredb|event-store/postgres|platform/embedded)/', pathNot: '^$1/' },
      'Each can be replaced alone.',
    ),
    never(
      'one-user-of-the-store-client',
      { pathNot: '^(event-store/eventstoredb|test|bench)/' },
      { path: '^node_modules/@eventstore/' },
      "EventStoreDB's client is its adapter's affair.",
    ),
    never(
      'browser-code-knows-http-alone',
      { path: '^web/(pixel|dashboard/browser)/' },
      {
        path: '^(domain|commands|projections|processors|read-api|write-api|event-store|platform|http|web/dashboard)/',
        pathNot: '^web/dashboard/browser/',
      },
      'What runs in a browser speaks to the service like any other client.',
    ),
    only(
      'pages-read-and-call',
      'web/dashboard',
      [
        '^http/',
        '^domain/(kernel/|[^/]+/([^/]*evidence|events)\\.ts$)',
        '^operations/(condition|thresholds)\\.ts$',
        '^platform/(csv|crypto/password-strength)\\.ts$',
        '^(read-api|queries)/',
        // What the API has no route for.
        '^(write-api|processors)/partners/',
        '^processors/billing/requested-audits\\.ts$',
        READERS,
      ],
      "A page reads by the named readers and their types, and changes nothing but through the API's routes, where these exist.",
    ),
    never(
      'the-client-stands-alone',
      { path: '^clients/([^/]+)/src/', pathNot: MCP_SERVER },
      { pathNot: '^clients/$1/src/', dependencyTypesNot: ['core'] },
      'It is published by itself, and brings no packages with it.',
    ),
    never(
      'the-mcp-server-has-its-packages',
      { path: MCP_SERVER },
      {
        pathNot: ['^clients/typescript/src/', '^node_modules/(@modelcontextprotocol/server|zod)/'],
        dependencyTypesNot: ['core'],
      },
      'Its packages are the optional ones of the client.',
    ),
    never(
      'the-mcp-server-is-loaded-on-demand',
      { path: '^clients/', pathNot: MCP_SERVER },
      { path: MCP_SERVER, dynamic: false },
      'Without the optional packages everything else of the client works.',
    ),
    never(
      'nobody-imports-the-client',
      { pathNot: '^(clients|test)/' },
      { path: '^clients/' },
      'It is made from the service, for others.',
    ),
    never(
      'nobody-imports-the-root-or-tests',
      { pathNot: '^(bin|cli|test|bench)/|^clients/[^/]+/generate.ts$' },
      { path: '^(bin|cli|test|bench)/' },
      'They stand above everything.',
    ),
    never(
      'the-service-knows-no-command-line',
      { path: '^bin/', pathNot: '^bin/doorplate\\.js$' },
      { path: '^cli/' },
      'A command composes what it needs with bin/; the service needs no command.',
    ),
    never('no-cycles', {}, { circular: true }, 'Two files that need each other are one file.'),
    // The bench installs its peers when it runs.
    never(
      'everything-resolves',
      {},
      { couldNotResolve: true, pathNot: '^(pg-boss|graphile-worker|@event-driven-io/emmett-postgresql)$' },
      'An import that leads nowhere.',
    ),
  ],
  required: [
    {
      name: 'typescript-is-read',
      severity: 'error',
      comment: 'Without its parser (@swc/core) the cruiser reads no TypeScript, and would find nothing.',
      module: { path: '^bin/doorplate\\.js$' },
      to: { path: '^domain/', reachable: true },
    },
  ],
  options: {
    // TypeScript 7 has no JavaScript API that the cruiser could parse with.
    parser: 'swc',
    doNotFollow: { path: PACKAGES },
    exclude: {
      path: ['/node_modules/', '^(coverage|\\.doorplate)/', '^clients/[^/]+/(dist|examples|node_modules)/'],
    },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
