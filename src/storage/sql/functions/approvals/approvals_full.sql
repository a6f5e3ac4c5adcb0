-- Returns true if a key has ten open approvals, or all keys of its account a hundred, or if the key has withdrawn thirty within an hour:
-- each is a message to the owner.
--
-- Locks: none. The caller holds the account.
create or replace function approvals_full(p_account text, p_key text, p_at timestamptz) returns boolean language plpgsql volatile as $$
begin
  return (
    select count(*) filter (where a.key_id = p_key) >= 10 or count(*) >= 100
    from approval a
    where a.key_id in (select k.id from access_key k where k.account_id = p_account) and a.status = 'pending' and a.expires_at > p_at
  ) or (
    select count(*) >= 30 from approval a
    where a.key_id = p_key and a.status = 'withdrawn' and a.decided_at > p_at - interval '1 hour'
  );
end $$;
