/**
 * Card settlements: stablecoins that were spent and are on their way to the treasury. Each try is a reservation under a
 * decision of its own whose money was held before and stays held where the chain refuses it: a merchant was paid whatever the
 * chain says. A refused try is repeated with a doubling pause, and from the tenth on its worth is a debt too.
 *
 * Locks: the account's, then the rows of settlements and debts, then balances. See 0014-cards.
 */
export const settlementTables = `
create table card_settlement (
  -- The first try's decision.
  id text collate "C" primary key,
  account_id text not null references account,
  -- What it pays; null: a debt.
  authorization_id text collate "C" references card_authorization,
  card_id text collate "C",
  place text not null,
  asset text not null,
  units bigint not null check (units >= 0),
  -- What its owner owes where it cannot be settled, and the system account that was paid for it.
  owed_asset text not null,
  owed_units bigint not null check (owed_units >= 0),
  paid_to text not null,
  status text not null default 'sending' check (status in ('sending', 'refused', 'settled', 'freed')),
  decision_id text collate "C" not null unique references decision,
  tries int not null default 1,
  -- What the last refusal was about: the authorization or the transfer.
  refused_by text,
  next_try_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz not null,
  check ((status = 'refused') = (next_try_at is not null)),
  check ((status in ('settled', 'freed')) = (ended_at is not null))
) with (fillfactor = 80);
create index card_settlement_of_account on card_settlement (account_id, ended_at);
create index card_settlement_sending on card_settlement (decision_id) where status = 'sending';
create index card_settlement_refused on card_settlement (next_try_at) where status = 'refused';
`

export const settlementFunctions = `
-- Reserves a settlement's money, which is held already, for one try.
create function card_settlement_reserve(p_decision text, s card_settlement, p_at timestamptz) returns void language sql as $$
  insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units)
  select p_decision, p_at, s.account_id, null, null, null, 'cards.settle', jsonb_build_object('category', 'card',
    'asset', s.asset, 'units', s.units::text, 'chain', s.place, 'settlement', s.id, 'authorization', s.authorization_id,
    'authorizedBy', (select a.decision_id from card_authorization a where a.id = s.authorization_id)), 'allow', '[]', null;
  -- From held to held: a release leaves it there.
  insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at)
  values (p_decision, s.account_id, null, (p_at at time zone 'UTC')::date, 0, s.account_id || ':' || s.place || ':held',
    s.account_id || ':' || s.place || ':held', s.asset, s.units, p_at);
$$;

-- Begins to settle money that is held. The caller holds the account's lock.
create function card_settle(
  p_id text, p_account text, p_authorization text, p_card text, p_place text, p_asset text, p_units bigint,
  p_owed_asset text, p_owed_units bigint, p_paid_to text, p_at timestamptz
) returns void language plpgsql as $$
declare
  s card_settlement;
begin
  s.id := p_id;
  s.account_id := p_account;
  s.authorization_id := p_authorization;
  s.place := p_place;
  s.asset := p_asset;
  s.units := p_units;
  perform card_settlement_reserve(p_id, s, p_at);
  insert into card_settlement (id, account_id, authorization_id, card_id, place, asset, units, owed_asset, owed_units, paid_to,
    decision_id, created_at)
  values (p_id, p_account, p_authorization, p_card, p_place, p_asset, p_units, p_owed_asset, p_owed_units, p_paid_to, p_id, p_at);
end $$;

-- Notes how a try ended. Settled: a debt that stood for it is paid. Refused: it is tried again after a pause, and from
-- the p_max_tries-th on it is a debt.
create function card_settlement_end(p_id text, p_max_tries int, p_at timestamptz, out verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  s card_settlement;
  d debt;
  v_account text;
  v_status text;
  v_posted text;
begin
  verdict := 'open';
  select account_id into v_account from card_settlement where id = p_id and status = 'sending';
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(v_account, 0));
  select * into s from card_settlement where id = p_id and status = 'sending' for update;
  if not found then
    return;
  end if;
  select r.status into v_status from reservation r where r.decision_id = s.decision_id;
  if v_status = 'reserved' then
    return;
  end if;
  select * into d from debt where account_id = s.account_id and kind = 'settlement' and reference = s.id and owed > 0 for update;
  if v_status = 'settled' then
    verdict := 'settled';
    update card_settlement set status = 'settled', ended_at = p_at where id = s.id;
    if d.id is not null then
      select l.verdict into v_posted from ledger_post('debt:' || d.id || ':' || d.owed, 'debt_payment', d.id, p_at,
        array[d.paid_to], array['receivable:debts'], array[d.asset], array[d.owed]) l;
      if v_posted <> 'posted' then
        raise exception 'a payment of a debt was not posted: %', v_posted;
      end if;
      update debt set owed = 0, paid_at = p_at where id = d.id;
    end if;
    return;
  end if;
  verdict := 'refused';
  update card_settlement set status = 'refused', next_try_at = p_at + least(interval '1 second' * power(2, least(tries, 12)),
      interval '1 hour'),
    refused_by = coalesce((select case t.failure_code when 'signature_rejected' then 'authorization' else 'transfer' end
      from transfer t where t.decision_id = s.decision_id), 'transfer')
  where id = s.id;
  if s.tries >= p_max_tries and d.id is null and s.owed_units > 0 then
    verdict := 'owed';
    -- Named for its try: one that was paid may be owed again, after a reorganization of the chain.
    perform debt_book('settlement:' || s.decision_id, s.account_id, 'settlement', s.id, s.card_id, s.owed_asset, s.owed_units,
      s.paid_to, p_at);
  end if;
end $$;

-- Tries a refused settlement again, once its pause is over.
create function card_settlement_retry(p_id text, p_decision text, p_at timestamptz, out verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  s card_settlement;
  v_account text;
begin
  verdict := 'early';
  select account_id into v_account from card_settlement where id = p_id;
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(v_account, 0));
  select * into s from card_settlement where id = p_id and status = 'refused' and next_try_at <= p_at for update;
  if found then
    verdict := 'retried';
    perform card_settlement_reserve(p_decision, s, p_at);
    update card_settlement set status = 'sending', next_try_at = null, decision_id = p_decision, tries = tries + 1 where id = p_id;
  end if;
end $$;
`
