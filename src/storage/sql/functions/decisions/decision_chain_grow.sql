-- Moves the head of the chain to the last of the seals that a statement adds, which must continue it without a gap.
--
-- Locks: the head's row. Sealing holds its own advisory lock before.
create or replace function decision_chain_grow() returns trigger language plpgsql as $$
declare
  v_head record;
begin
  select h.sequence, h.hash into v_head from decision_head h for update;
  if exists (
    select from (
      select a.sequence, a.previous, lag(a.sequence, 1, v_head.sequence) over chain as last, lag(a.hash, 1, v_head.hash) over chain as head
      from added a window chain as (order by a.sequence)
    ) s
    where s.sequence <> s.last + 1 or s.previous <> s.head
  ) then
    raise exception 'the seals do not continue the chain of decisions, which ends at %', v_head.sequence using errcode = 'integrity_constraint_violation';
  end if;
  update decision_head h set sequence = a.sequence, hash = a.hash from (select * from added order by sequence desc limit 1) a;
  return null;
end $$;

create or replace trigger decision_chain_grow after insert on decision_seal
  referencing new table as added for each statement execute function decision_chain_grow();
