-- What makes two spends equal: their category, amount and payee, whatever money it is. A purchase is paid to its seller, whose addresses
-- may differ; an order's payee is what it trades.
create or replace function repeat_name(p_facts jsonb) returns text language sql immutable as $$
  select jsonb_build_array(p_facts->>'category', p_facts->>'amount',
    coalesce(p_facts->'seller'->>'origin', lower(p_facts->>'counterparty'), p_facts->>'symbol'))::text
$$;
