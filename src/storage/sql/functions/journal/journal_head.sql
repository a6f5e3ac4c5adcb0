-- The last entry of the journal, for a transaction that appends one. A change is rare, so entries are numbered and chained as they
-- are written, one transaction after the other.
--
-- Arguments: account, kind of actor and day of the entry to come. Result `used`: bytes of their entries so far.
-- Locks: the journal, before the read, so that the read includes the latest entry. It is the last lock of every transaction, and
--   nothing is waited for under it: rows of journal_usage are written under it alone.
create or replace function journal_head(
  p_account text default null, p_actor text default null, p_day date default null,
  out sequence bigint, out hash text, out used bigint
) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtext('bursar journal'), 0);
  select j.sequence, j.hash into sequence, hash from journal_entry j order by j.sequence desc limit 1;
  select u.bytes into used from journal_usage u where u.account_id = p_account and u.actor_kind = p_actor and u.day = p_day;
end $$;
