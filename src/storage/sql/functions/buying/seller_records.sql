-- Records of sellers over the latest 1000 paid purchases from each: those of all accounts once five stand behind them, else the
-- account's own. A seller without either has no row. Changes are counted from one purchase to the next: of the price, those of one
-- resource in one asset. A purchase is refunded if any of its money came back.
create or replace function seller_records(p_account text, p_sellers text[])
returns table (
  seller text, is_shared boolean, purchases bigint, delivered bigint, undelivered bigint, median_ms double precision,
  last_at timestamptz, price_changes bigint, payee_changes bigint, refunded bigint
) language sql stable as $$
  select s.seller, r.*
  from unnest(p_sellers) as s (seller)
  cross join lateral (
    with latest as materialized (
      -- The latest ten of each account.
      select p.* from seller_sample(s.seller) p
    ),
    own as materialized (
      select p.* from purchase p
      where p.account_id = p_account and p.seller = s.seller and p.state = 'settled' order by p.id desc limit 1000
    ),
    sharing as (select count(distinct l.account_id) >= 5 as is_shared from latest l),
    counted as (
      select l.* from latest l where (select is_shared from sharing)
      union all
      select o.* from own o where not (select is_shared from sharing)
    ),
    changes as (
      select c.id, c.created_at, c.delivered_at, c.failure_code,
        c.units <> lag(c.units) over (partition by c.resource, c.asset order by c.id) as is_price_changed,
        c.pay_to <> lag(c.pay_to) over (order by c.id) as is_payee_changed
      from counted c
    )
    select (select is_shared from sharing), count(*), count(*) filter (where c.delivered_at is not null),
      count(*) filter (where c.delivered_at is null and c.failure_code is not null),
      percentile_cont(0.5) within group (order by extract(epoch from c.delivered_at - c.created_at) * 1000),
      max(c.created_at), count(*) filter (where c.is_price_changed), count(*) filter (where c.is_payee_changed),
      count(*) filter (where exists (select from refund f where f.object_kind = 'purchase' and f.object_id = c.id))
    from changes c
    having count(*) > 0
  ) r
$$;
