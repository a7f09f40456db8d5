/**
 * Preloaded into a process (`--import`): reports on stderr whenever a part of OpenTelemetry's SDK is loaded. The
 * PostgreSQL client loads its API alone, which does nothing.
 */
import { registerHooks } from 'node:module';

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context);
    const [, name] = /node_modules\/(@opentelemetry\/(?!api\/)[^/]+)/.exec(resolved.url) ?? [];
    if (name !== undefined) process.stderr.write(`loaded ${name}\n`);
    return resolved;
  },
});
