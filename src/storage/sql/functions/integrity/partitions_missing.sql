-- Lists the partitions that a time needs and that are not there: those of its month and of the next two, for each table whose rows are
-- kept by month. A table is added here once a migration has partitioned it.
--
-- Locks: none.
create or replace function partitions_missing(p_at timestamptz)
returns table (parent text, prefix text, month timestamptz) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
  select t.parent, t.prefix, (date_trunc('month', p_at at time zone 'UTC') + make_interval(months => ahead)) at time zone 'UTC'
  from (values ('decision', 'dec'), ('decision_seal', 'dec')) as t (parent, prefix) cross join generate_series(0, 2) ahead
  where to_regclass(t.parent || to_char(date_trunc('month', p_at at time zone 'UTC') + make_interval(months => ahead), '_YYYY_MM')) is null
  order by t.parent, ahead;
end $$;
