/**
 * Given to a process by `--import`: says on stderr whenever a part of OpenTelemetry's SDK is loaded. Its API alone, which
 * does nothing, comes with the PostgreSQL client.
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
