-- Decides on a purchase. The whole amount is one spend of the spend engine; its money may come from several sources.
--
-- Arguments
--   p_id, p_card, p_version: id of the authorization to be written; the card as the caller has read it
--   p_token, p_webhook, p_fingerprint: the processor's names for the purchase and the request, and the request's hash
--   p_units, p_partial: cents; whether a part may be approved
--   p_refusal: the reason when the card's own controls refuse it; null: they do not
--   p_places, p_assets, p_rates: sources in the order of the card's priority; a rate is the worth of a smallest unit in
--     ten-billionths of a millionth of a USD
--   p_spend: a spend_request. Its facts are those of a purchase that the first source pays; its
--     mac is stored if they prove right
--   p_kyc_level, p_is_guest, p_key_expires_at: of the holder and the bound key, as the caller has read them
--   p_is_ours: whether the gateway owns the wallet, as the caller has read it. Otherwise:
--   p_since: when the first of the chains was read (null: none was)
--   p_chains, p_left, p_tokens, p_prices, p_on_chain, p_booked: of each token on a chain that was read: the chain, what is left of
--     the allowance there, the token, its price there, its balance there, and in the books before that
--   p_ask: {id, input, fingerprint, merchant, expires_at, since, max_open}: the approval to be requested if the policy asks for one,
--     unless the same one or max_open of the key are open; and the time after which an approval must have been given to let this
--     purchase pass, once. Null: neither
--   p_event: the processor's name of the request; a new one under a known p_token asks for p_units more
--   p_is_reserve: the purchase is the reserve of a card for one purchase, which is not issued yet
--   p_float: the most that open purchases may promise of a wallet that its owner can empty, in millionths of a USD
-- Verdicts: decided (reason says approved or why not); repeated (the answer of the first request); other (a request that is not the
--   one known by this name); stale (the card, its key, its holder or the wallet's owner has changed: read them again); pull (it
--   would be approved, if `pulls` had reached the escrow; nothing is written).
-- A card for one purchase was decided when it was issued: its purchase takes what was reserved then, if card, key and account are not
-- stopped, and no policy or budget is asked again.
-- Locks: the processor's token; the webhook's id; with p_event, the row of the authorization that it raises; the account; then all balances of the account, by account and asset; then the
--   approval that lets the purchase pass.
--   Rows of card_usage, card_hold, card_settlement, debt and the wallet's owner are protected by the account.
create or replace function card_authorize(
  p_id text, p_card text, p_version int, p_token text, p_webhook text, p_units bigint, p_partial boolean, p_refusal text,
  p_about jsonb, p_places text[], p_assets text[], p_rates bigint[], p_spend jsonb,
  p_fingerprint text, p_is_ours boolean, p_since timestamptz, p_chains text[], p_left bigint[],
  p_tokens text[], p_prices bigint[], p_on_chain bigint[], p_booked bigint[],
  p_kyc_level text, p_is_guest boolean, p_key_expires_at timestamptz, p_ask jsonb default null,
  p_float bigint default 0, p_event text default null, p_is_reserve boolean default false,
  out verdict text, out authorization_id text, out reason text, out approved bigint, out decision_id text, out pulls jsonb
) language plpgsql as $$
#variable_conflict use_column
declare
  a card_authorization;
  c card;
  q spend_request;
  holder record;
  f record;
  s record;
  v_at timestamptz;
  v_facts jsonb;
  v_day date;
  v_need numeric;
  v_total numeric := 0;
  v_caps bigint[];
  v_used bigint;
  v_worth numeric;
  v_take bigint;
  v_places text[] := '{}';
  v_assets text[] := '{}';
  v_takes bigint[] := '{}';
  v_worths bigint[] := '{}';
  v_approval text;
  v_floating numeric;
  v_is_floating boolean := false;
  n card_increment;
  u card_single_use;
  v_is_more boolean := false;
  v_id text := p_id;
begin
  perform pg_advisory_xact_lock(hashtext('card'), hashtext(p_token));
  perform pg_advisory_xact_lock(hashtext('card webhook'), hashtext(p_webhook));
  -- Only an identical request gets the answer again; any other under a known name has no hold. An approval that was reversed for
  -- coming too late, or that was declined after all, is not repeated as an approval.
  -- Two look-ups, each by its own index.
  if p_event is null then
    select * into a from card_authorization where processor_token = p_token;
  else
    select * into a from card_authorization where processor_token = p_token for update;
  end if;
  if a.id is null then
    select * into a from card_authorization where webhook_id = p_webhook;
  elsif p_event <> coalesce(a.event_token, '') and p_fingerprint <> a.fingerprint and a.reason = 'approved' and a.card_id = p_card then
    select * into n from card_increment where authorization_id = a.id and event_token = p_event;
    if found then
      verdict := case n.fingerprint when p_fingerprint then 'repeated' else 'other' end;
      authorization_id := a.id;
      reason := case when n.reason = 'approved' and a.status in ('voided', 'expired', 'declined') then 'too_late' else n.reason end;
      approved := n.approved;
      decision_id := n.decision_id;
      return;
    end if;
    v_is_more := a.status = 'pending';
    v_id := a.id;
  end if;
  if a.id is not null and not v_is_more then
    verdict := case when a.processor_token = p_token and coalesce(a.fingerprint, p_fingerprint) = p_fingerprint and a.card_id = p_card
      then 'repeated' else 'other' end;
    authorization_id := a.id;
    reason := case when a.reason = 'approved' and a.status in ('voided', 'expired', 'declined') then 'too_late' else a.reason end;
    approved := a.approved;
    decision_id := a.decision_id;
    return;
  end if;

  q := jsonb_populate_record(null::spend_request, p_spend);
  v_at := q.at;
  v_day := (v_at at time zone 'UTC')::date;
  perform pg_advisory_xact_lock(hashtextextended(q.account, 0));
  -- Read after the lock: every earlier change by the owner applies.
  select * into c from card where id = p_card;
  select h.kyc_level, h.guest, exists (select from wallet w where w.account_id = h.id and w.owner->>'kind' = 'gateway') as is_ours,
    -- To the millisecond, as the caller reads it.
    (select date_trunc('milliseconds', k.expires_at) from access_key k
      where k.id = case when p_is_reserve then q.key else c.key_id end) as key_expires_at, h.status
  into holder from account h where h.id = q.account;
  if c.version is distinct from p_version or (holder.is_ours, holder.kyc_level, holder.guest, holder.key_expires_at)
    is distinct from (p_is_ours, p_kyc_level, p_is_guest, p_key_expires_at)
  then
    verdict := 'stale';
    return;
  end if;

  verdict := 'decided';
  authorization_id := v_id;
  approved := 0;
  reason := p_refusal;
  v_need := p_units;
  select * into u from card_single_use where card_id = p_card;

  if reason is null and p_units > 0 and exists (select 1 from debt d where d.account_id = q.account and d.owed > 0) then
    reason := 'debt_owed';
  end if;

  if reason is null and p_units > 0 and c.daily_max is not null then
    select coalesce(max(t.units), 0) into v_used from card_usage t where t.card_id = p_card and t.day = v_day;
    if c.daily_max - v_used < p_units then
      reason := 'daily_limit';
    end if;
  end if;

  if u.card_id is not null then
    if reason is null then
      reason := case
        when holder.status <> 'active' then 'account_locked'
        when not key_is_active(c.key_id) then 'key_not_active'
        when p_units = 0 then null
        when u.ended_at is not null or u.expires_at <= v_at then 'card_canceled'
        when u.authorization_id is distinct from a.id then 'card_used' end;
    end if;
    if reason is null and p_units > 0 then
      select coalesce(sum(h.micros), 0) into v_total from card_hold h where h.authorization_id = u.reserve_id;
      if v_total < v_need * 10000 and p_partial and v_total >= 10000 then
        v_need := div(v_total, 10000);
      end if;
      if v_total < v_need * 10000 then
        reason := 'purchase_limit';
      else
        select r.decision_id, r.day into decision_id, v_day from card_authorization r where r.id = u.reserve_id;
      end if;
    end if;
  elsif reason is null and p_units > 0 then
    perform 1 from balance b where b.account > q.account || ':' and b.account < q.account || ';'
    order by b.account, b.asset for update;

    v_caps := card_caps(q.account, p_places, p_assets, p_is_ours, p_since, p_chains, p_left, p_tokens, p_prices, p_on_chain,
      p_booked);
    select coalesce(sum(div(p.cap::numeric * p.rate, 10000000000)), 0) into v_total
    from unnest(p_rates, v_caps) as p (rate, cap);
    if v_total < v_need * 10000 and p_partial and v_total >= 10000 then
      v_need := div(v_total, 10000);
    end if;

    v_worth := v_need * 10000;
    for f in select * from unnest(p_places, p_assets, p_rates, v_caps) with ordinality as p (place, asset, rate, cap, ordinal)
      order by p.ordinal
    loop
      exit when v_worth = 0;
      v_take := least(f.cap, div(v_worth * 10000000000 + f.rate - 1, f.rate::numeric));
      continue when v_take = 0 or div(v_take::numeric * f.rate, 10000000000) = 0;
      v_places := v_places || f.place;
      v_assets := v_assets || f.asset;
      v_takes := v_takes || v_take;
      v_worths := v_worths || least(v_worth, div(v_take::numeric * f.rate, 10000000000))::bigint;
      v_worth := v_worth - v_worths[cardinality(v_worths)];
    end loop;
    -- More than there is: spend_reserve reports that itself, after everything else that it checks.
    if v_worth > 0 then
      v_places := p_places[1:1];
      v_assets := p_assets[1:1];
      -- At least one unit more than is booked: a source may be worth less to a card than to its owner.
      select greatest(div(v_need * 100000000000000 + p_rates[1] - 1, p_rates[1]::numeric), coalesce(max(b.units), 0) + 1)::bigint
      into v_take from balance b where b.account = q.account || ':' || p_places[1] || ':available' and b.asset = p_assets[1];
      v_takes := array[v_take];
      v_worths := array[(v_need * 10000)::bigint];
    end if;

    if not p_is_ours and v_worth = 0 then
      select coalesce(sum(h.micros), 0) into v_floating from unnest(v_places, v_worths) as h (place, micros)
      where h.place <> 'bank' and left(h.place, 7) <> 'escrow.';
      v_is_floating := v_floating > 0 and v_floating + card_float_micros(q.account) > p_float;
    end if;
    v_facts := q.facts || jsonb_build_object('asset', v_assets[1],
      'chain', case v_places[1] when 'bank' then null else replace(v_places[1], 'escrow.', '') end,
      'usdMicros', (v_need * 10000)::bigint::text, 'holds',
      (select jsonb_agg(jsonb_build_object('place', h.place, 'asset', h.asset, 'units', h.units::text) order by h.ordinal)
        from unnest(v_places, v_assets, v_takes) with ordinality as h (place, asset, units, ordinal)));
    -- The row is locked because a pause of the key or a freeze of the card ends it without the account's lock.
    if q.needs_approval and p_ask is not null then
      select o.id into v_approval from approval o
      where o.card_id = p_card and o.status = 'approved' and o.answer is null and o.problem is null and o.ended_at is null
        and o.used_by is null and o.account_id = q.account and o.key_id = q.key and o.merchant = p_ask->>'merchant'
        and o.units >= p_units and o.decided_at > (p_ask->>'since')::timestamptz
      order by o.units, o.id limit 1 for update;
      if v_approval is not null then
        v_facts := v_facts || jsonb_build_object('approvalId', v_approval);
      end if;
    end if;
    -- What the owner can take away after the answer must be below the float; the rest is pulled first. Everything else has agreed by
    -- then, and nothing of it stands.
    if v_is_floating then
      begin
        select * into s from card_reserve(p_spend, v_facts, v_places[1], v_assets[1], v_takes[1], (v_need * 10000)::bigint, v_approval);
        if s.verdict = 'allow' then
          raise exception using errcode = 'BPULL';
        end if;
      exception when sqlstate 'BPULL' then
        verdict := 'pull';
        pulls := (select jsonb_agg(jsonb_build_object('place', h.place, 'asset', h.asset, 'units', h.units::text) order by h.ordinal)
          from unnest(v_places, v_assets, v_takes) with ordinality as h (place, asset, units, ordinal)
          where h.place <> 'bank' and left(h.place, 7) <> 'escrow.');
        return;
      end;
    else
      select * into s from card_reserve(p_spend, v_facts, v_places[1], v_assets[1], v_takes[1], (v_need * 10000)::bigint, v_approval);
    end if;
    if s.verdict = 'stale_policy' then
      verdict := 'stale';
      return;
    end if;
    decision_id := s.decision_id;
    if s.verdict = 'deny' then
      reason := case when exists (
        select 1 from jsonb_array_elements(s.violations) v
        where v->>'rule' not in ('per_transaction', 'daily_budget', 'daily_count', 'weekly_budget', 'weekly_count',
          'monthly_budget', 'monthly_count', 'total_budget', 'total_count', 'owner_budget')
      ) then 'policy_denied' else 'budget_exceeded' end;
    elsif s.verdict <> 'allow' then
      reason := s.verdict;
    elsif v_approval is not null then
      update approval o set answer = jsonb_build_object('transactionId', p_id, 'decisionId', s.decision_id,
        'amount', decimal_of_micros((v_need * 10000)::bigint), 'currency', 'USD',
        'usedAt', to_char(v_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      where o.id = v_approval;
    end if;
    if reason = 'approval_required' and p_ask is not null and not exists (
      select from approval o where o.key_id = q.key and o.fingerprint = p_ask->>'fingerprint' and o.status = 'pending'
        and o.expires_at > v_at
    ) and (p_ask->>'max_open')::int > (
      select count(*) from approval o
      where o.key_id = q.key and o.status = 'pending' and o.card_id is not null and o.expires_at > v_at
    ) and not approvals_full(q.account, q.key, v_at) then
      insert into approval (id, account_id, key_id, decision_id, operation, input, fingerprint, violations, status, created_at,
        expires_at, card_id, merchant, units)
      values (p_ask->>'id', q.account, q.key, decision_id, q.operation, p_ask->>'input', p_ask->>'fingerprint', '[]', 'pending', v_at,
        (p_ask->>'expires_at')::timestamptz, p_card, p_ask->>'merchant', p_units);
    end if;
  end if;

  if reason is null then
    reason := 'approved';
    approved := v_need;
  end if;
  if v_is_more then
    insert into card_increment (authorization_id, event_token, fingerprint, decision_id, reason, units, approved, created_at)
    values (a.id, p_event, p_fingerprint, decision_id, reason, p_units, approved, v_at);
    update card_authorization set units = units + p_units, approved = card_authorization.approved + card_authorize.approved,
      updated_at = v_at
    where id = a.id and card_authorize.approved > 0;
    perform event_write(a.account_id, a.key_id, case reason when 'approved' then 'card.authorized' else 'card.declined' end, 'card_transaction', a.id,
      jsonb_build_object('cardId', p_card, 'decisionId', decision_id, 'asset', 'USD',
        'units', (case reason when 'approved' then approved else p_units end)::text, 'reason', reason), v_at);
  else
    insert into card_authorization (id, processor_token, webhook_id, fingerprint, card_id, account_id, key_id, decision_id, day, reason,
      status, units, approved, about, created_at, updated_at, event_token, is_reserve, reserve_id)
    values (p_id, p_token, p_webhook, p_fingerprint, p_card, q.account, q.key, decision_id, v_day, reason,
      case reason when 'approved' then 'pending' else 'declined' end, p_units, approved, p_about, v_at, v_at, p_event, p_is_reserve,
      case when approved > 0 then u.reserve_id end);
  end if;
  if approved = 0 then
    return;
  end if;
  if u.card_id is not null then
    perform card_hold_move(u.reserve_id, v_id, approved::numeric * 10000);
    update card_single_use set authorization_id = v_id, status = 'authorized' where card_id = p_card;
    return;
  end if;

  insert into card_usage as t (card_id, day, units) values (p_card, v_day, approved)
  on conflict (card_id, day) do update set units = t.units + excluded.units;
  if v_is_more then
    perform card_hold_add(v_id, h.place, h.asset, h.units, h.micros)
    from unnest(v_places, v_assets, v_takes, v_worths) as h (place, asset, units, micros);
  else
    insert into card_hold (authorization_id, ordinal, place, asset, units, micros)
    select p_id, h.ordinal, h.place, h.asset, h.units, h.micros
    from unnest(v_places, v_assets, v_takes, v_worths) with ordinality as h (place, asset, units, micros, ordinal);
  end if;
  if cardinality(v_takes) > 1 then
    select * into s from ledger_post(decision_id || ':hold:more', 'hold', decision_id, v_at,
      (select array_agg(q.account || ':' || h || ':available') from unnest(v_places[2:]) h),
      (select array_agg(q.account || ':' || h || ':held') from unnest(v_places[2:]) h), v_assets[2:], v_takes[2:]);
    if s.verdict <> 'posted' then
      -- Its rows are locked, so this cannot happen; if it did, nothing of the purchase may stand.
      raise exception 'a card hold was not posted: %', s.verdict;
    end if;
  end if;
end $$;
