-- Applies an event to a purchase, once: clearing, reversal, refund, return_reversal (of a refund), or close with its last status.
-- Clearings without an approval count in the card's day and the key's budget, as what nobody was asked for. What a reversal or a
-- close gives back counts no longer, for the latest decision first, where that was counted. The reversal of a refund first takes what
-- was refunded, which was counted already. A refund above what was paid is credited too, and its event says so. The uncovered part
-- becomes a debt, reported as shortfall in cents.
--
-- A card for one purchase: a clearing takes what was reserved for it, also one that was never authorized, if no other purchase has.
-- With the close of its purchase the card ends and the rest of the reserve returns; a purchase that was declined after all leaves
-- the card as it was.
--
-- Arguments: p_units in cents; p_places, p_assets and p_rates as in card_authorize; p_ids are ids for the decisions of settlements.
-- Verdicts: applied; unknown (no such purchase); repeated (or of no effect on a declined purchase); waiting (the chain has to decide
--   something first: apply it again).
-- Locks: the authorization's row, as a resolve takes its reservation; the account; then all balances of the account, by account
--   and asset.
create or replace function card_apply(
  p_event text, p_token text, p_kind text, p_units bigint, p_status text, p_at timestamptz,
  p_places text[], p_assets text[], p_rates bigint[], p_ids text[],
  out verdict text, out shortfall bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  a card_authorization;
  h record;
  v_left numeric := 0;
  v_worth numeric;
  v_take bigint;
  v_back numeric := 0;
  v_more numeric := 0;
  v_next int := 1;
  v_from text[] := '{}';
  v_to text[] := '{}';
  v_assets text[] := '{}';
  v_takes bigint[] := '{}';
  v_posted text;
  v_first int := 0;
  v_again bigint := 0;
  u card_single_use;
  v_is_adopted boolean := false;
begin
  shortfall := 0;
  select * into a from card_authorization where processor_token = p_token for update;
  if not found then
    verdict := 'unknown';
    return;
  end if;
  insert into card_event (id, authorization_id, kind, units, at) values (p_event, a.id, p_kind, p_units, p_at) on conflict do nothing;
  if not found or a.status = 'declined' and p_kind in ('reversal', 'close') then
    verdict := 'repeated';
    return;
  end if;
  verdict := 'applied';
  perform pg_advisory_xact_lock(hashtextextended(a.account_id, 0));
  perform 1 from balance b where b.account > a.account_id || ':' and b.account < a.account_id || ';'
  order by b.account, b.asset for update;

  if p_kind = 'clearing' and a.reserve_id is null and not a.is_reserve then
    update card_single_use s set authorization_id = a.id, status = 'authorized'
    where s.card_id = a.card_id and s.ended_at is null and s.authorization_id is null
    returning * into u;
    v_is_adopted := found;
    if v_is_adopted then
      update card_authorization set reserve_id = u.reserve_id, decision_id = r.decision_id, day = r.day, status = 'pending'
      from (select decision_id, day from card_authorization where id = u.reserve_id) r where id = a.id;
      select * into a from card_authorization where id = a.id;
    end if;
  end if;
  if p_kind = 'clearing' and a.reserve_id is not null then
    perform card_hold_move(a.reserve_id, a.id,
      p_units::numeric * 10000 - (select coalesce(sum(micros), 0) from card_hold where authorization_id = a.id));
  elsif p_kind = 'close' and a.status = 'pending' and a.reserve_id is not null then
    select * into u from card_single_use s where s.reserve_id = a.reserve_id and s.ended_at is null;
    if found and p_status = 'declined' and a.cleared = 0 then
      perform card_hold_move(a.id, a.reserve_id, (select coalesce(sum(micros), 0) from card_hold where authorization_id = a.id));
      update card_single_use s set authorization_id = null, status = 'open' where s.card_id = u.card_id;
      update card_authorization set reserve_id = null, status = 'declined', updated_at = p_at where id = a.id;
      perform event_write(a.account_id, a.key_id, 'card.reversed', 'card_transaction', a.id, jsonb_build_object('cardId', a.card_id,
        'decisionId', a.decision_id, 'asset', 'USD', 'units', a.approved::text, 'reason', null), p_at);
      return;
    elsif found then
      perform card_hold_move(a.reserve_id, a.id, (select coalesce(sum(micros), 0) from card_hold where authorization_id = a.reserve_id));
      update card_authorization set status = p_status, updated_at = p_at where id = a.reserve_id;
      perform card_single_use_close(u.card_id, 'used', p_at);
    end if;
  end if;

  -- Money that is on its way is taken where it arrives. Money is given back when the payment is no longer open: if it fails, what the
  -- account owes for it goes first.
  if p_kind = 'clearing' and exists (
    select from card_hold where authorization_id = a.id and micros > 0 and left(place, 5) = 'pull.'
  ) or p_kind = 'refund' and exists (
    select from card_settlement s join wallet w on w.account_id = s.account_id
    where s.account_id = a.account_id and s.status = 'sending'
      and (left(s.place, 7) <> 'escrow.' and w.owner->>'kind' <> 'gateway' or s.authorization_id = a.id
        and exists (select from debt d where d.account_id = a.account_id and d.reference = s.id and d.owed > 0))
  ) then
    delete from card_event where authorization_id = a.id and id = p_event;
    verdict := 'waiting';
    return;
  end if;

  if p_kind in ('clearing', 'return_reversal') then
    v_first := case when a.cleared = 0 and not v_is_adopted and (a.approved = 0 or a.status in ('voided', 'expired', 'declined')) then 1 else 0 end;
    v_left := p_units::numeric * 10000;
    for h in select * from card_hold where authorization_id = a.id and micros > 0 and p_kind = 'clearing' order by ordinal loop
      exit when v_left = 0;
      v_worth := least(v_left, h.micros);
      v_take := div(h.units * v_worth + h.micros - 1, h.micros::numeric);
      update card_hold set units = units - v_take, micros = micros - v_worth where authorization_id = a.id and ordinal = h.ordinal;
      v_left := v_left - v_worth;
      if v_take > 0 and h.place = 'bank' then
        v_from := v_from || (a.account_id || ':bank:held');
        v_to := v_to || 'external:cards'::text;
        v_assets := v_assets || h.asset;
        v_takes := v_takes || v_take;
      elsif v_take > 0 then
        perform card_settle(p_ids[v_next], a.account_id, a.id, a.card_id, h.place, h.asset, v_take, 'USD',
          div(v_worth + 9999, 10000::numeric)::bigint, 'external:cards', p_at);
        v_next := v_next + 1;
      end if;
    end loop;
    -- More than was held: the network has already moved it, so it is taken from any source that has money.
    if p_kind = 'return_reversal' then
      v_again := least(p_units, a.refunded);
    end if;
    v_more := v_left - v_again::numeric * 10000;
    for h in select * from money_to_take(a.account_id, p_places, p_assets, p_rates, v_left) loop
      v_left := v_left - h.micros;
      v_from := v_from || (a.account_id || ':' || h.place || ':available');
      v_to := v_to || case h.place when 'bank' then 'external:cards' else a.account_id || ':' || h.place || ':held' end;
      v_assets := v_assets || h.asset;
      v_takes := v_takes || h.units;
      if h.place <> 'bank' then
        perform card_settle(p_ids[v_next], a.account_id, a.id, a.card_id, h.place, h.asset, h.units, 'USD',
          div(h.micros + 9999, 10000::numeric)::bigint, 'external:cards', p_at);
        v_next := v_next + 1;
      end if;
    end loop;
    -- Where none has, the gateway has paid it, and the owner owes it.
    shortfall := div(v_left + 9999, 10000);
    if shortfall > 0 then
      perform debt_book('card:' || a.id || ':' || p_event, a.account_id, 'card', a.id, a.card_id, 'USD', shortfall,
        'external:cards', p_at);
    end if;
  elsif p_kind = 'refund' and p_units > 0 then
    select f.left_units, f.sources, f.destinations, f.assets, f.units into v_back, v_from, v_to, v_assets, v_takes
    from card_forgive(a.id, p_units, p_at) f;
    if v_back > 0 then
      v_from := v_from || 'external:cards'::text;
      v_to := v_to || (a.account_id || ':bank:available');
      v_assets := v_assets || 'USD'::text;
      v_takes := v_takes || v_back::bigint;
    end if;
    v_back := 0;
  elsif p_kind in ('reversal', 'close') then
    select coalesce(sum(micros), 0) into v_left from card_hold where authorization_id = a.id;
    if p_kind = 'reversal' then
      v_left := least(v_left, p_units::numeric * 10000);
    end if;
    v_back := v_left;
    for h in select * from card_hold where authorization_id = a.id and micros > 0 order by ordinal desc loop
      exit when v_left = 0;
      v_worth := least(v_left, h.micros);
      v_take := div(h.units * v_worth, h.micros::numeric);
      update card_hold set units = units - v_take, micros = micros - v_worth where authorization_id = a.id and ordinal = h.ordinal;
      v_left := v_left - v_worth;
      -- What is being pulled becomes available where the pull ends.
      if v_take > 0 and left(h.place, 5) <> 'pull.' then
        v_from := v_from || (a.account_id || ':' || h.place || ':held');
        v_to := v_to || (a.account_id || ':' || h.place || ':available');
        v_assets := v_assets || h.asset;
        v_takes := v_takes || v_take;
      end if;
    end loop;
  end if;

  if cardinality(v_takes) > 0 then
    select l.verdict into v_posted
    from ledger_post('card:' || a.id || ':' || p_event, 'card_' || p_kind, a.id, p_at, v_from, v_to, v_assets, v_takes) l;
    if v_posted <> 'posted' then
      raise exception 'a card event was not posted: %', v_posted;
    end if;
  end if;
  if v_more > 0 then
    insert into card_usage as u (card_id, day, units) values (a.card_id, a.day, div(v_more, 10000))
    on conflict (card_id, day) do update set units = u.units + div(v_more, 10000);
    -- An event without a standing approval was not counted as a spend yet.
    insert into budget_usage as u (key_id, day, used_micros, count, unasked_micros, unasked_count)
    select k, a.day, v_more, v_first, v_more, v_first from unnest(key_path(a.key_id)) k where a.key_id is not null
    on conflict (key_id, day) do update set used_micros = u.used_micros + v_more, count = u.count + v_first,
      unasked_micros = u.unasked_micros + v_more, unasked_count = u.unasked_count + v_first;
  end if;
  -- An increment may have been counted on a later day than the purchase, or for another key.
  v_left := v_back;
  for h in select r.decision_id, r.key_id, r.day, r.usd_micros from reservation r where r.usd_micros > 0 and v_back > 0
    and (r.decision_id = a.decision_id
      or r.decision_id in (select i.decision_id from card_increment i where i.authorization_id = a.id))
  order by r.day desc, r.decision_id desc loop
    exit when v_left = 0;
    v_worth := least(v_left, h.usd_micros);
    update reservation set usd_micros = usd_micros - v_worth where decision_id = h.decision_id;
    update card_usage set units = greatest(units - div(v_worth, 10000), 0) where card_id = a.card_id and day = h.day;
    update budget_usage set used_micros = greatest(used_micros - v_worth, 0) where key_id = any (key_path(h.key_id)) and day = h.day;
    v_left := v_left - v_worth;
  end loop;
  -- The reserve of a purchase that is open ends with it.
  if p_kind = 'close' and a.status = 'pending' and not exists (
    select from card_authorization o where o.reserve_id = a.id and o.status = 'pending'
  ) then
    with ended as (
      update reservation set status = case a.cleared when 0 then 'released' else 'settled' end, resolved_at = p_at
      where status = 'reserved' and (decision_id = a.decision_id
        or decision_id in (select i.decision_id from card_increment i where i.authorization_id = a.id))
      returning key_id, day
    )
    update budget_usage u set count = greatest(u.count - e.count, 0)
    from (select k as key_id, day, count(*) as count from ended, unnest(key_path(ended.key_id)) k group by k, day) e
    where a.cleared = 0 and u.key_id = e.key_id and u.day = e.day;
  end if;
  -- Each event of the network, and the money that a reversal or a close gave back.
  perform event_write(a.account_id, a.key_id, e.type, 'card_transaction', a.id,
    jsonb_build_object('cardId', a.card_id, 'decisionId', a.decision_id, 'asset', 'USD', 'units', e.units::text, 'reason', e.reason), p_at)
  from (values
    (case p_kind when 'refund' then 'card.refunded' else 'card.cleared' end,
      case when p_kind in ('clearing', 'return_reversal', 'refund') then p_units else 0 end,
      case when p_kind = 'refund' and a.cleared > 0 and p_units > a.cleared - a.refunded then 'refund_beyond_payment' end),
    ('card.reversed', div(v_back, 10000)::bigint, null)) as e (type, units, reason)
  where e.units > 0 and not a.is_reserve;
  update card_authorization set updated_at = p_at,
    cleared = cleared + case when p_kind in ('clearing', 'return_reversal') then p_units - v_again else 0 end,
    refunded = refunded + case p_kind when 'refund' then p_units else -v_again end,
    shortfall = card_authorization.shortfall + card_apply.shortfall,
    status = case
      -- It has cleared, whatever its status was.
      when p_kind in ('clearing', 'return_reversal') and status = 'declined' or p_status = 'declined' and cleared > 0 then 'settled'
      when p_kind = 'close' and status in ('pending', 'voided', 'expired') then p_status
      else status end
  where id = a.id;
end $$;
