-- Millionths as a decimal without trailing zeros. The product is exact; a quotient would be rounded.
create or replace function decimal_of_micros(p_micros bigint) returns text language sql immutable as $$
  select trim_scale(p_micros * 0.000001)::text
$$;
