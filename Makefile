# The comment behind a target is its line of `make help`, which a bare `make` prints.

CARGO ?= cargo
export SQLX_OFFLINE = true

# The folder of the server programs: those that are installed, else those of a Python wheel.
POSTGRES = TAILRACE_PG_BIN="$$(scripts/ensure-postgres.sh)" && export TAILRACE_PG_BIN

.PHONY: help demo test check matrix soak mistakes mutants bench queries install setup

help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# In the profile and with the features that `make test` builds with.
demo: setup ## a pass on a private lake; DEMO=--keep leaves the lake running
	@$(POSTGRES) && $(CARGO) build --locked --bin tailrace --example demo && \
	  $(CARGO) run --quiet --locked --example demo -- $(DEMO)

test: setup ## all tests, against a real Postgres of their own
	@$(POSTGRES) && TAILRACE_PGBOUNCER="$$(scripts/ensure-pgbouncer.sh)" $(CARGO) test --locked --workspace

check: setup ## format, SQL, lints, documentation, words, .github; needs psql
	$(CARGO) fmt --all --check
	scripts/queries.sh --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --workspace
	scripts/words.sh
	scripts/check-github.sh

# CELLS="18:27 15:17" (Postgres:catalog) runs these alone, and does not write the page.
matrix: setup ## the core of the tests on each version; writes docs/versions.md
	scripts/matrix.sh $(or $(CELLS),--write)

# tests/suite/soak says who takes part; tests/suite/sweep/calendar cuts off a pass at each of its statements.
SOAK ?= 10m
soak: setup ## everybody at work on one lake for 10m; SOAK=1h for longer
	@$(POSTGRES) && TAILRACE_SOAK="$(SOAK)" \
	  $(CARGO) test --locked --test suite -- --nocapture soak calendar::cut calendar::orders

# tests/suite/guards/mistakes.rs says which.
mistakes: setup ## that no operator's mistake ends more than a guard allows: ten thousand of them
	@$(POSTGRES) && TAILRACE_TEST_MISTAKES=10000 \
	  $(CARGO) test --locked --test suite -- --nocapture guards::mistakes

# SHARD=2/8 tries the second of eight parts. HAND=1 tries those of tests/mutants instead, HAND="NAME NAME" some of them.
SHARD ?= 1/1
mutants: setup ## that a test fails for each change of a rule; SHARD=1/8, HAND=1
	@$(if $(HAND),$(POSTGRES) && scripts/hand-mutants.sh $(filter-out 1,$(HAND)),scripts/mutants.sh $(SHARD))

# ROWS="hold cold" measures some rows, BENCH=quick a twentieth of the size. Neither writes the page.
bench: setup ## measures for docs/performance.md; BENCH=quick only tries it
	@$(POSTGRES) && BENCH="$(BENCH)" $(CARGO) bench --locked --bench scale -- $(ROWS)

queries: setup ## writes .sqlx anew, after a change of SQL; needs psql
	scripts/queries.sh

setup:
	@scripts/ensure-toolchain.sh

# PREFIX is /usr/local, PROFILE release; DESTDIR stands before PREFIX, for whoever makes a package.
PREFIX ?= /usr/local
PROFILE ?= release
install: ## the program, its manual pages and completions, below PREFIX
	@scripts/ensure-toolchain.sh
	$(CARGO) install --locked --no-track --force --path . --bin tailrace --profile $(PROFILE) \
	  --root "$(DESTDIR)$(PREFIX)"
	cd "$(DESTDIR)$(PREFIX)" && mkdir -p share/bash-completion/completions \
	    share/fish/vendor_completions.d share/zsh/site-functions \
	  && bin/tailrace manual share/man/man1 \
	  && bin/tailrace completions bash > share/bash-completion/completions/tailrace \
	  && bin/tailrace completions fish > share/fish/vendor_completions.d/tailrace.fish \
	  && bin/tailrace completions zsh > share/zsh/site-functions/_tailrace
