-- The last entry of the journal, for a transaction that appends one. A change is rare, so entries are numbered and chained as they
-- are written, one transaction after the other.
--
-- Locks: the journal, before the read, so that the read includes the latest entry. It is the last lock of every transaction, and
--   nothing is waited for under it.
create or replace function journal_head(out sequence bigint, out hash text) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtext('bursar journal'), 0);
  select j.sequence, j.hash into sequence, hash from journal_entry j order by j.sequence desc limit 1;
end $$;
