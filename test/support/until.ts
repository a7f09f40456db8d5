/** Waits for a condition and names it when it is not met. @throws after `ms` */
export const until = async <T>(
  what: string,
  check: () => T | Promise<T>,
  ms = 20_000,
): Promise<NonNullable<T>> => {
  const end = performance.now() + ms;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (performance.now() > end) throw new Error(`waited ${ms} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
