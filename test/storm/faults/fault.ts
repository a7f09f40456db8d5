/** A fault that a storm injects. */
export interface Fault {
  readonly name: string;
  /** Injects the fault, keeps it for a while, and lifts it. */
  run(): Promise<void>;
  /** Ends what belongs to the fault and outlasts it. */
  afterwards?(): Promise<void>;
}
