-- Whether the latest paid purchases from a seller were delivered, newest first: '1' or '0' each, at most 100. Those of other
-- accounts count once five accounts stand behind them, and of each only the latest ten: nobody makes a record alone. A purchase that
-- is still presented to the seller has no outcome yet.
create or replace function seller_outcomes(p_account text, p_seller text) returns text language sql stable as $$
  with latest as materialized (
    select p.id, p.account_id, p.delivered_at is not null as is_delivered
    from purchase p
    where p.seller = p_seller and p.state = 'settled' and (p.delivered_at is not null or p.failure_code is not null)
    order by p.id desc limit 500
  ),
  own as materialized (
    select p.id, p.account_id, p.delivered_at is not null as is_delivered
    from purchase p
    where p.account_id = p_account and p.seller = p_seller and p.state = 'settled'
      and (p.delivered_at is not null or p.failure_code is not null)
    order by p.id desc limit 100
  ),
  others as (
    select l.id, l.is_delivered, row_number() over (partition by l.account_id order by l.id desc) as nth
    from latest l
    where l.account_id <> p_account and (select count(distinct l2.account_id) from latest l2) >= 5
  ),
  counted as (
    select o.id, o.is_delivered from own o
    union all
    select o.id, o.is_delivered from others o where o.nth <= 10
    order by id desc limit 100
  )
  select coalesce(string_agg(case when c.is_delivered then '1' else '0' end, '' order by c.id desc), '') from counted c
$$;
