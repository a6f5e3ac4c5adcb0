-- Makes room for more of the answer to a purchase: while the account's answers would take more than their room, the oldest of ended
-- purchases are deleted, those of the same key before those of others, so that no key can push out what another has bought while it has
-- answers of its own. Hashes stay. Parts of answers that were never whole are deleted after ten minutes, when nobody receives them.
--
-- Result: true if there is room for p_bytes.
-- Locks: rows of purchase, skipping locked ones.
create or replace function answer_make_room(p_purchase text, p_bytes bigint, p_room bigint, p_at timestamptz) returns boolean
language plpgsql as $$
declare
  v_account text;
  v_key text;
  v_over bigint;
  v_old record;
begin
  select p.account_id, p.key_id into strict v_account, v_key from purchase p where p.id = p_purchase;
  select p_bytes - p_room
    + coalesce((select sum(octet_length(a.sealed)) from purchase_answer a where a.account_id = v_account), 0)
    + coalesce((select sum(octet_length(p.delivered)) from purchase p where p.account_id = v_account and p.delivered is not null), 0)
    into v_over;
  if v_over <= 0 then
    return true;
  end if;
  with gone as (
    delete from purchase_answer a using purchase p
    where a.account_id = v_account and a.written_at < p_at - interval '10 minutes' and p.id = a.purchase_id and p.delivered is null
    returning octet_length(a.sealed) as bytes)
  select v_over - coalesce(sum(gone.bytes), 0) into v_over from gone;
  for v_old in
    select p.id, octet_length(p.delivered)
      + coalesce((select sum(octet_length(a.sealed)) from purchase_answer a where a.purchase_id = p.id), 0) as bytes
    from purchase p
    where p.account_id = v_account and p.delivered is not null and p.id <> p_purchase and p.state in ('settled', 'failed')
    order by p.key_id is not distinct from v_key desc, p.delivered_at, p.id
    for update of p skip locked
  loop
    exit when v_over <= 0;
    update purchase set delivered = null, credential = null where id = v_old.id;
    delete from purchase_answer where purchase_id = v_old.id;
    v_over := v_over - v_old.bytes;
  end loop;
  return v_over <= 0;
end $$;
