/** A list read page by page, with a cursor to resume from. */

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The cursor after this page; undefined: nothing follows. */
  readonly cursor: string | undefined;
}

/**
 * `for await` it, item by item, or `pages()`. A second iteration continues at the cursor; after the end of a finite
 * list (a history), it starts again.
 */
export interface Feed<Item> extends AsyncIterable<Item> {
  /**
   * The cursor after the last page whose items were all consumed, which is when the next page is requested. Start
   * another feed with it at any time: nothing is missed, and at most the items of one page repeat.
   */
  readonly cursor: string | undefined;
  /** The pages that are not empty, for callers that save the cursor of each. */
  pages(): AsyncIterable<Page<Item>>;
}

export interface FeedDeps<Item> {
  readonly read: (cursor: string | undefined) => Promise<Page<Item> & { readonly hasMore: boolean }>;
  readonly start: string | undefined;
  /** Waits between the end and the next poll; null: the list ends there. */
  readonly pause: (() => Promise<void>) | null;
}

export const createFeed = <Item>({ read, start, pause }: FeedDeps<Item>): Feed<Item> => {
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
