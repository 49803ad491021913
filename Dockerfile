# The image of tailrace: one binary and the certificates of public authorities.
#
#   docker build --tag tailrace .
#   docker run --env DATABASE_URL=postgres://... tailrace
#   docker run --env DATABASE_URL=postgres://... tailrace plan
#
# With --read-only, give it a place for its heartbeat: --tmpfs /run/tailrace:uid=10001,mode=700

ARG RUST=1.95
ARG DEBIAN=bookworm

FROM rust:${RUST}-slim-${DEBIAN} AS build
WORKDIR /build
# The queries are checked against the descriptions in .sqlx: no database is needed.
ENV SQLX_OFFLINE=true
# What is fetched and what is compiled stay in caches of the builder, not in layers: a
# change of ours compiles our crate alone, and nothing of the sources has to be faked for it.
COPY . .
RUN --mount=type=cache,id=tailrace-registry,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,id=tailrace-target,target=/build/target,sharing=locked \
    cargo build --release --locked --bin tailrace \
    && install -D --mode=0755 target/release/tailrace /out/tailrace

FROM debian:${DEBIAN}-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && install -d --owner=10001 --group=10001 --mode=0700 /run/tailrace
COPY --from=build /out/tailrace /usr/local/bin/tailrace
ENV TAILRACE_ENV=production \
    TAILRACE__HEALTH__FILE=/run/tailrace/health.json
# A number, for a supervisor to see that it is not root.
USER 10001:10001
WORKDIR /
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["tailrace", "health"]
ENTRYPOINT ["tailrace"]
CMD ["run"]
