#!/usr/bin/env bash
# Writes .sqlx: the results of checking every query of the crate against a real catalog. With --check
# this script only compares the results with the committed ones. Run it after a change of SQL or of a
# migration. It starts a private Postgres, and needs psql beside the server programs.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(scripts/ensure-postgres.sh)
psql=$(command -v "$bin/psql" || command -v psql) || {
    echo "queries.sh: no psql beside $bin or on the PATH; the queries are not checked. Install it:" >&2
    case $(uname -s) in
        Darwin) echo "  brew install libpq && export PATH=\"\$(brew --prefix libpq)/bin:\$PATH\"" >&2 ;;
        *) echo "  apt-get install postgresql-client (Debian, Ubuntu), dnf install postgresql (Fedora);" \
            "as root on Debian also scripts/ensure-postgres.sh --with-psql" >&2 ;;
    esac
    exit 1
}

work=
as=()
# `as` is empty unless root runs this, and bash before 4.4 calls an empty list unset.
as_server() { ${as[@]+"${as[@]}"} "$@"; }
stop() {
    [[ -n $work ]] || return 0
    as_server "$bin/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
work=$(mktemp -d /tmp/tailrace-queries.XXXXXX)
if [ "$(id -u)" = 0 ]; then
    chown nobody "$work"
    as=(runuser -u nobody --)
fi
(
    cd "$work"
    as_server "$bin/initdb" -D "$work/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
    as_server "$bin/pg_ctl" -D "$work/data" -l "$work/log" -w \
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
