-- What a key sets aside for living keys below it and they have not spent, in millionths of a US dollar.
--
-- Arguments: p_keys: the keys of a spend, for which nothing need be set aside any more: it is what the earmark is for. Their own
--   total budgets hold them to it.
-- Locks: none. The caller holds the account.
create or replace function earmarks_open(p_holder text, p_keys text[], p_at timestamptz) returns bigint language plpgsql volatile as $$
begin
  return (
    select coalesce(sum(greatest(k.earmark_micros
      - coalesce((select sum(u.used_micros) from budget_usage u where u.key_id = k.id), 0), 0)), 0)::bigint
    from earmark e
    cross join lateral (select k.id, k.earmark_micros, k.status, k.expires_at from access_key k where k.id = e.key_id offset 0) k
    where e.holder_id = p_holder and k.status <> 'revoked' and (k.expires_at is null or k.expires_at > p_at)
      and not k.id = any (p_keys)
  );
end $$;
