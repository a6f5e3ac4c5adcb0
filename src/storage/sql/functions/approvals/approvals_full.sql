-- Returns true if a key has ten open approvals, a root with all keys below it fifty, or all keys of its account a hundred, or if the key
-- has withdrawn thirty within an hour: each is a message to the owner, and no agent may use up what the others can ask.
--
-- Locks: none. The caller holds the account.
create or replace function approvals_full(p_account text, p_key text, p_at timestamptz) returns boolean language plpgsql volatile as $$
declare
  v_root text := (select coalesce(k.path[1], k.id) from access_key k where k.id = p_key);
begin
  return (
    select count(*) filter (where a.key_id = p_key) >= 10 or count(*) filter (where coalesce(k.path[1], k.id) = v_root) >= 50
      or count(*) >= 100
    from approval a join access_key k on k.id = a.key_id
    where k.account_id = p_account and a.status = 'pending' and a.expires_at > p_at
  ) or (
    select count(*) >= 30 from approval a
    where a.key_id = p_key and a.status = 'withdrawn' and a.decided_at > p_at - interval '1 hour'
  );
end $$;
