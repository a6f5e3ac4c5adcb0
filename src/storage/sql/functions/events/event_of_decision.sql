-- Writes the event of a spend that was denied, with the names of the rules only: limits and counterparties are the decision's own. Every
-- partition has the trigger.
--
-- Locks: none.
create or replace function event_of_decision() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id, 'decision.denied', 'decision', new.id,
    jsonb_build_object('operation', new.operation, 'verdict', new.verdict,
      'rules', (select coalesce(jsonb_agg(distinct v->>'rule'), '[]') from jsonb_array_elements(new.violations) v)),
    new.at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on decision
  for each row when (new.verdict in ('deny', 'insufficient_funds')) execute function event_of_decision();
