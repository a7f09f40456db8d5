/** What is listed page by page, with a cursor to go on from. */

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where to go on after this page; undefined: nothing follows. */
  readonly cursor: string | undefined;
}

/** `for await` it, item by item, or `pages()`. Iterated again it goes on where it stands; after an end that nothing follows (a history's), it begins anew. */
export interface Feed<Item> extends AsyncIterable<Item> {
  /**
   * Where it stands: after the last page whose items have all been dealt with, which is when the next one is asked
   * for. Begin another feed with it, today or tomorrow: nothing is missed, and at most the items of one page come again.
   */
  readonly cursor: string | undefined;
  /** Pages that hold anything, for whoever keeps the cursor of each. */
  pages(): AsyncIterable<Page<Item>>;
}

export interface FeedParts<Item> {
  readonly read: (cursor: string | undefined) => Promise<Page<Item> & { readonly hasMore: boolean }>;
  readonly start: string | undefined;
  /** What comes between the end and another look at it; null: the end is the end. */
  readonly pause: (() => Promise<void>) | null;
}

export const createFeed = <Item>({ read, start, pause }: FeedParts<Item>): Feed<Item> => {
  let cursor = start;
  async function* pages(): AsyncGenerator<Page<Item>> {
    for (;;) {
      const page = await read(cursor);
      if (page.items.length > 0) yield { items: page.items, cursor: page.cursor };
      cursor = page.cursor;
      if (page.hasMore) continue;
      if (pause === null) return;
      await pause();
    }
  }
  return {
    get cursor() {
      return cursor;
    },
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { items } of pages()) yield* items;
    },
  };
};
