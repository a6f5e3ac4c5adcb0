-- Resources for which at least five accounts have paid since a moment, with the price that most of them paid. A path may name who
-- bought there: it is told by nobody's purchases alone.
create or replace function sellers_shared(p_since timestamptz, p_limit int)
returns table (resource text, origin text, seller text, protocol text, asset text, units bigint)
language sql stable as $$
  select b.resource, b.origin, b.seller, b.usual[1], b.usual[2], b.usual[3]::bigint
  from (
    select p.resource, min(p.origin) as origin, min(p.seller) as seller, count(*) as bought,
      mode() within group (order by array[p.protocol, p.asset, p.units::text]) as usual
    from purchase p
    where p.state = 'settled' and p.created_at >= p_since
    group by p.resource
    having count(distinct p.account_id) >= 5
  ) b
  order by b.bought desc, b.resource limit p_limit
$$;
