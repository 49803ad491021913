-- How much of a table goes at once otherwise than by time alone (src/rules/blast_radius.rs).

-- Whether whoever set the policy was shown what goes by it, and confirmed that.
alter table tailrace.policy add column is_confirmed boolean not null default false;

-- The rule that passes follow for the table: since when, whether what expired with it may go, and how many files
-- came late.
alter table tailrace.table_state add column rule_change jsonb;
