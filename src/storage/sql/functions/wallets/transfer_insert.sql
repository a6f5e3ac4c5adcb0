-- Writes the rows of transfers whose money is reserved, and uses up their intents.
--
-- Arguments: the arrays are one transfer for each index. p_transfers has the columns of the row, and "intent": id of the signed intent,
--   or null.
-- Returns the decision and the paying wallet, from which it is sent, of each row; none for an intent that was already used, or a
--   transfer that is there.
-- Locks: the intents' rows. Nothing is waited for after them.
create or replace function transfer_insert(p_accounts text[], p_decisions text[], p_transfers jsonb[])
returns table (decision_id text, written jsonb) language plpgsql as $$
#variable_conflict use_column
declare
  v_unusable int[] := '{}';
begin
  for v_place in 1 .. cardinality(p_transfers) loop
    if p_transfers[v_place]->>'intent' is not null then
      update intent i set used_at = (p_transfers[v_place]->>'at')::timestamptz
      where i.id = p_transfers[v_place]->>'intent' and i.account_id = p_accounts[v_place] and i.used_at is null;
      if not found then
        v_unusable := v_unusable || v_place;
      end if;
    end if;
  end loop;
  return query
  insert into transfer as w
    (id, account_id, decision_id, token, units, destination, chain, state, created_at, updated_at, authorized, signer, valid_until, mac, payer, route, funding_id)
  select t.id, a.account, a.decision, t.token, t.units, t.destination, t.chain, coalesce(t.state, 'reserved'), t.at, t.at, t.authorized, t.signer,
    t.valid_until, t.mac, coalesce(t.payer, 'wallet'), t.route, t.funding
  from unnest(p_accounts, p_decisions, p_transfers) with ordinality as a (account, decision, transfer, place)
  cross join lateral jsonb_to_record(a.transfer) as t (
    id text, token text, units bigint, destination text, chain text, at timestamptz, authorized jsonb, signer text,
    valid_until timestamptz, mac text, payer text, route jsonb, state text, funding text)
  where a.place <> all (v_unusable)
    -- The caller has made the reservation or locked it, so no twin comes between. An upsert would also write a confirmation to the log.
    and not exists (select from transfer x where x.decision_id = a.decision and x.funding_id is not distinct from t.funding)
  returning w.decision_id, (select jsonb_build_object('origin', p.origin, 'owner', p.owner, 'card_cover', p.card_cover::text, 'escrow_first', p.escrow_first)
    from wallet p where p.account_id = w.account_id);
end $$;
