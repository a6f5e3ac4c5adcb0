-- Stores authentication codes of decisions that have none, and returns the ids in the order of the codes. One decision at a time:
-- the plan of a join depends on how large the table was when the session planned it, and a table grows.
--
-- Arguments: p_codes: objects of id, mac
-- Locks: the decisions' rows, by id.
create or replace function decisions_authenticate(p_codes jsonb) returns table (id text) language plpgsql as $$
#variable_conflict use_column
declare
  code record;
begin
  for code in select q.id, q.mac from jsonb_to_recordset(p_codes) as q (id text, mac text) order by q.id collate "C" loop
    update decision d set mac = code.mac where d.id = code.id and d.mac is null;
  end loop;
  return query
  select q.id from rows from (jsonb_to_recordset(p_codes) as (id text, mac text)) with ordinality as q order by q.ordinality;
end $$;
