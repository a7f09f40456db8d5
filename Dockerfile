# The service without its embedded parts: it needs DATABASE_URL, EVENTSTORE_URL and MASTER_KEY.
# docker-compose.yml shows it with all that it needs around it.

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY clients/typescript/package.json clients/typescript/
# The optional ones are a Node of the project's own and the embedded PostgreSQL: the image has no use for them.
RUN npm ci --omit=dev --omit=optional

# The program, which the user of the image can read also where the checkout was made under umask 077.
FROM node:24.21.0-bookworm-slim AS program
WORKDIR /app
COPY . .
RUN chmod -R go=rX .

FROM node:24.21.0-bookworm-slim
LABEL org.opencontainers.image.title="Doorplate" \
      org.opencontainers.image.description="Tells a partner which company is behind an IP address or a website visit." \
      org.opencontainers.image.version="0.3.0" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    OPS_HOST=0.0.0.0 \
    DATA_DIR=/data
RUN install --directory --owner=node --group=node --mode=0700 /data
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=program /app .
# Owned by root and run as another user: the process cannot change its own code.
USER node
# The operations listener on 3001 is for the private network and is not exposed.
EXPOSE 3000
# Readiness, so that nothing is sent here before the read models have caught up; a start may have to migrate first.
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.OPS_PORT || 3001) + '/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--max-semi-space-size=16", "--disable-warning=ExperimentalWarning", "bin/doorplate.js"]
CMD ["serve"]
