# `make test` proves it, `make demo` shows it; both set up what a fresh machine lacks.

CARGO ?= cargo
export SQLX_OFFLINE = true

.PHONY: demo test matrix soak bench check setup queries

demo: setup
	$(CARGO) build --locked --bin tailrace --example demo
	TAILRACE_PG_BIN="$$(scripts/ensure-postgres.sh | tail -n 1)" \
	  $(CARGO) run --quiet --locked --example demo -- $(DEMO)

test: setup
	TAILRACE_PG_BIN="$$(scripts/ensure-postgres.sh | tail -n 1)" \
	  TAILRACE_PGBOUNCER="$$(scripts/ensure-pgbouncer.sh)" $(CARGO) test --locked --workspace

# The core of the tests on each version of the server and of Postgres, and the table of docs/versions.md.
# CELLS="18:27 15:17" (Postgres:catalog) runs these alone, and does not write the page.
matrix: setup
	scripts/matrix.sh $(or $(CELLS),--write)

# Everybody who has to do with a lake at work on it at once, for a while; tests/suite/soak says who. And passes
# that are cut off, or meet an append, at each of their statements: tests/suite/sweep/calendar.
SOAK ?= 10m
soak: setup
	TAILRACE_PG_BIN="$$(scripts/ensure-postgres.sh | tail -n 1)" TAILRACE_SOAK="$(SOAK)" \
	  $(CARGO) test --locked --test suite -- --nocapture soak calendar::cut calendar::orders

# The figures of docs/performance.md. BENCH=quick only proves that it works, in a twentieth of the
# size; ROWS="hold cold" measures some rows. Neither writes the page.
bench: setup
	TAILRACE_PG_BIN="$$(scripts/ensure-postgres.sh | tail -n 1)" BENCH="$(BENCH)" \
	  $(CARGO) bench --locked --bench scale -- $(ROWS)

# Format, lints, documentation, the committed checks of the SQL, and what GitHub reads.
check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --workspace
	scripts/queries.sh --check
	scripts/check-github.sh

# Server programs of Postgres, only if none are found; and a Rust toolchain must be there.
setup:
	@scripts/ensure-toolchain.sh
	@scripts/ensure-postgres.sh >/dev/null

# After a change of SQL or of a migration.
queries:
	scripts/queries.sh
