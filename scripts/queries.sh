#!/usr/bin/env bash
# Writes .sqlx, the results of checking every query of the crate against a real catalog; with
# --check it only makes sure that they are what is committed. Run it after a change of SQL or of
# a migration. It stands on a private Postgres of its own and needs psql beside the server.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(scripts/ensure-postgres.sh | tail -n 1)
if [ ! -x "$bin/psql" ] && ! command -v psql >/dev/null; then
    echo "queries.sh: no psql beside $bin or on the PATH; not checked" >&2
    exit 1
fi
psql=$(command -v "$bin/psql" || command -v psql)

work=$(mktemp -d /tmp/tailrace-queries.XXXXXX)
as=()
if [ "$(id -u)" = 0 ]; then
    chown nobody "$work"
    as=(runuser -u nobody --)
fi
stop() {
    "${as[@]}" "$bin/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap stop EXIT
(
    cd "$work"
    "${as[@]}" "$bin/initdb" -D "$work/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
    "${as[@]}" "$bin/pg_ctl" -D "$work/data" -l "$work/log" -w \
        -o "-k $work -c listen_addresses='' -c fsync=off" start >/dev/null
)
{
    cat tests/kit/src/hoglake-v27.sql
    echo 'create schema tailrace;'
    cat migrations/*.sql
} | "$psql" -h "$work" -U postgres -d postgres -q -v ON_ERROR_STOP=1 -f -

# The macros write a file for each query while the crate is compiled, so it has to be compiled.
mkdir "$work/queries"
touch src/lib.rs
SQLX_OFFLINE=false SQLX_OFFLINE_DIR="$work/queries" \
    DATABASE_URL="postgres://postgres@localhost/postgres?host=$work" cargo check --quiet --lib

if [ "${1:-}" = --check ]; then
    if ! diff -r .sqlx "$work/queries"; then
        echo "queries.sh: the committed .sqlx is not what the queries give: run scripts/queries.sh" >&2
        exit 1
    fi
else
    mkdir -p .sqlx
    rm -f .sqlx/*.json
    cp "$work"/queries/*.json .sqlx/
fi
