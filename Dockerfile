# The gateway in a container: built with everything, run with what it needs, as a user without rights.
#
#   docker build -t bursar .
#   docker run --rm -p 8787:8787 bursar          # the sandbox; see compose.yaml for two gateways on PostgreSQL
#   docker build --build-arg OMIT=--omit=optional -t bursar .      # without GPL packages and a local chain; see NOTICE

FROM node:22-bookworm-slim AS build
WORKDIR /bursar
COPY package.json package-lock.json .npmrc ./
COPY src/client/package.json src/client/
COPY src/console/package.json src/console/
RUN npm ci --ignore-scripts && npm rebuild esbuild
COPY . .
ARG OMIT
RUN npm run build && npm run package && if [ -z "$OMIT" ]; then cp .cache/*-sepolia-*.json .build/package/.cache/; fi

FROM node:22-bookworm-slim
WORKDIR /bursar
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/var/lib/bursar
# One helper thread of V8 does what four would, and what each has once used stays with it: 70 MB less. Blocks of 32 KB, which V8
# compiles in, go back to the system one by one: 30 MB less.
ENV NODE_OPTIONS=--v8-pool-size=1 MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=32768
# What `npx bursar` runs, with the versions of its shrinkwrap.
COPY --from=build /bursar/.build/package ./
ARG OMIT
RUN npm ci --omit=dev $OMIT --ignore-scripts && npm cache clean --force \
  && mkdir -p "$DATA_DIR" && chown node:node "$DATA_DIR"
USER node
VOLUME /var/lib/bursar
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT ?? 8787) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", ".build/bin/main.js", "serve"]
