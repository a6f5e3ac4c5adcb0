-- Whether paid purchases from a seller were delivered: '1' or '0' each, at most 100. Those of other accounts count once five accounts
-- stand behind them, and of each only the latest ten. They come in rounds, the latest of each account and five own ones in the first, the
-- newest of a round first, so that a policy that looks at the first few sees as many accounts as there are: few make no record. A
-- purchase that is still presented to the seller has no outcome yet.
create or replace function seller_outcomes(p_account text, p_seller text) returns text language sql stable as $$
  with latest as materialized (
    select p.id, p.account_id, p.delivered_at is not null as is_delivered
    from seller_sample(p_seller) p
    where p.delivered_at is not null or p.failure_code is not null
  ),
  own as materialized (
    select p.id, p.delivered_at is not null as is_delivered
    from purchase p
    where p.account_id = p_account and p.seller = p_seller and p.state = 'settled'
      and (p.delivered_at is not null or p.failure_code is not null)
    order by p.id desc limit 100
  ),
  counted as (
    select o.id, o.is_delivered, (row_number() over (order by o.id desc) + 4) / 5 as round from own o
    union all
    select l.id, l.is_delivered, row_number() over (partition by l.account_id order by l.id desc)
    from latest l
    where l.account_id <> p_account and (select count(distinct l2.account_id) from latest l2) >= 5
    order by round, id desc limit 100
  )
  select coalesce(string_agg(case when c.is_delivered then '1' else '0' end, '' order by c.round, c.id desc), '') from counted c
$$;
