-- Decides on purchases one after the other, in one transaction, and returns a row for each, in their order. A request is an object
-- with card_authorize's parameters, without their prefix. `made` is the decision if it still needs an authentication code, see
-- decisions_made.
--
-- Locks: each level of card_authorize as a whole before the next, sorted: all tokens, all webhooks, all authorizations that
-- may be raised, all accounts, all balances.
create or replace function card_authorize_batch(p_requests jsonb)
returns table (verdict text, authorization_id text, reason text, approved bigint, made jsonb, pulls jsonb) language plpgsql as $$
#variable_conflict use_column
declare
  v_account text;
  q record;
  r record;
begin
  -- A single purchase takes its locks in this order by itself.
  if jsonb_array_length(p_requests) > 1 then
    perform pg_advisory_xact_lock(hashtext('card'), name.hash)
    from (select distinct hashtext(p.token) as hash from jsonb_to_recordset(p_requests) as p (token text) order by 1) name;

    perform pg_advisory_xact_lock(hashtext('card webhook'), name.hash)
    from (select distinct hashtext(p.webhook) as hash from jsonb_to_recordset(p_requests) as p (webhook text) order by 1) name;

    perform 1 from card_authorization a
    where a.processor_token in (
      select p.token from jsonb_to_recordset(p_requests) as p (token text, event text) where p.event is not null)
    order by a.processor_token for update;

    perform pg_advisory_xact_lock(owner.hash)
    from (
      select distinct hashtextextended(p.account, 0) as hash from jsonb_to_recordset(p_requests) as p (account text) order by 1
    ) owner;

    for v_account in
      select p.account from jsonb_to_recordset(p_requests) as p (account text)
      group by p.account order by (p.account || ':') collate "C"
    loop
      perform 1 from balance b where b.account > v_account || ':' and b.account < v_account || ';'
      order by b.account, b.asset for update;
    end loop;
  end if;

  for q in
    select * from rows from (jsonb_to_recordset(p_requests) as (
      id text, card text, version int, kyc_level text, is_guest boolean, key_expires_at timestamptz, token text, webhook text,
      units bigint, partial boolean, refusal text, about text, places text[], assets text[], rates bigint[], spend text,
      fingerprint text, is_ours boolean, since timestamptz, chains text[], lefts bigint[], tokens text[], prices bigint[],
      on_chain bigint[], booked bigint[], ask text, float bigint, event text, is_reserve boolean
    )) with ordinality as p order by p.ordinality
  loop
    select * into r from card_authorize(q.id, q.card, q.version, q.token, q.webhook, q.units, q.partial, q.refusal,
      q.about::jsonb, q.places, q.assets, q.rates, q.spend::jsonb, q.fingerprint, q.is_ours, q.since, q.chains, q.lefts,
      q.tokens, q.prices, q.on_chain, q.booked, q.kyc_level, q.is_guest, q.key_expires_at,
      q.ask::jsonb, coalesce(q.float, 0), q.event, coalesce(q.is_reserve, false));
    pulls := r.pulls;
    verdict := r.verdict;
    authorization_id := r.authorization_id;
    reason := r.reason;
    approved := r.approved;
    made := '[]';
    if exists (select from decision_read(r.decision_id) d where d.id is not null and d.mac is null) then
      made := decisions_made(array[r.decision_id]);
    end if;
    return next;
  end loop;
end $$;
