/** `GET` or `POST /v1/lookup`. */
export interface Lookups {
  readonly of: 'lookups';
  readonly method: 'GET' | 'POST';
  readonly keys: readonly string[];
  /**
   * One address for all requests, or another for each: those with the numbers from `first` on (`addressOf`), or with
   * `among` all those below it once, in a permuted order.
   */
  readonly address: { readonly same: string } | { readonly first: number; readonly among?: number };
}

/** The request of a page with the pixel: each time another tab, from the address of another number (`addressOf`). */
export interface Captures {
  readonly of: 'captures';
  readonly tracker: string;
  readonly first: number;
  /** The number of addresses, which come in turn. Default: no address comes twice. */
  readonly among?: number;
}

/** `POST …/reveal` of these sessions in turn, each time a new reveal. */
export interface Reveals {
  readonly of: 'reveals';
  readonly key: string;
  readonly sessions: readonly string[];
}

/** `GET` of these paths in turn. */
export interface Pages {
  readonly of: 'pages';
  readonly key: string;
  readonly paths: readonly string[];
}

/** `POST /signals` of the operations listener, one signal each, of the addresses with the numbers from `first` on. */
export interface Clues {
  readonly of: 'clues';
  readonly first: number;
}

/** `POST /insert` of the route that makes one durable insert. */
export interface Inserts {
  readonly of: 'inserts';
}

/** `POST /api/send` of Umami: page views, each time from the address of another number. */
export interface Visits {
  readonly of: 'visits';
  readonly website: string;
  readonly first: number;
}

export interface LoadPlan<Requests = Lookups | Captures | Reveals | Pages | Clues | Inserts | Visits> {
  readonly port: number;
  readonly requests: Requests;
  readonly connections: number;
  /** Requests a second, evenly spaced. Without it every connection sends again as soon as it is answered. */
  readonly rate?: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** The only status that counts as an answer. */
  readonly expect: number;
}

/** Its final output; at the beginning of the measured time it prints an empty object. */
export interface LoadResult {
  readonly answers: number;
  readonly seconds: number;
  /** Milliseconds from sending a request, or from its due time, to its whole answer. */
  readonly p50: number;
  readonly p99: number;
  /** Requests that were sent, warm-up included. */
  readonly sent: number;
  /** Seconds of CPU that the generator itself used in the measured time. */
  readonly ownCpu: number;
}
