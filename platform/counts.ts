/** Counts by name. A name whose count is zero takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  all(): number[] {
    return [...this.#counts.values()];
  }

  add(name: string, more: number): void {
    const count = this.of(name) + more;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}
