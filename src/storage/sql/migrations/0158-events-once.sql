-- Events are written once. Until now each was copied from the outbox when it was published; now `event` has it from the transaction
-- of its effect on, and readers find it by `event_publication`: a row for events of one account and one agent that follow one another.
--
-- An id sorts by the time at which the event was written, and nobody sees it before its publication.

create table event_publication (
  account_id text collate "C" not null,
  -- Of the last event. The others have the ones before it.
  last_sequence bigint not null,
  agent_id text collate "C",
  event_ids text[] collate "C" not null check (cardinality(event_ids) > 0),
  -- What the spend or key of each event is labeled with; null: none has a label.
  tasks text[],
  -- From then on they are kept: the time of an effect may lie far back, as a bank's report of a deposit.
  published_at timestamptz not null,
  check (cardinality(tasks) = cardinality(event_ids)),
  primary key (account_id, last_sequence)
);
create index event_publication_of_agent on event_publication (agent_id, last_sequence) where agent_id is not null;
create index event_publication_expired on event_publication using brin (published_at);

insert into event_publication (account_id, last_sequence, agent_id, event_ids, tasks, published_at)
select account_id, max(sequence), agent_id, array_agg(id order by sequence),
  case when count(task) > 0 then array_agg(task order by sequence) end, published_at
from (
  select e.*, (row_number() over (partition by account_id, agent_id, published_at, island order by sequence) - 1) / 50 as part
  from (
    select *, sequence - row_number() over (partition by account_id, agent_id, published_at order by sequence) as island from event
  ) e
) e
group by account_id, agent_id, published_at, island, part
order by published_at;

drop index event_of_agent, event_expired;
alter table event drop constraint event_pkey, drop constraint event_id_key;
alter table event drop column sequence, drop column published_at, drop column task;
alter table event add primary key (id);

-- Events that are not yet published, in the order in which they were written. There are few of them, and all are read: an index would
-- only be written.
alter table event_outbox rename to event_outbox_before;
alter sequence event_outbox_position_seq rename to event_outbox_before_position_seq;
create table event_outbox (
  position bigint generated always as identity,
  event_id text collate "C" not null
);
-- A new database has neither events nor, yet, the function.
do $$
begin
  if exists (select from event_outbox_before) then
    with moved as materialized (
      select *, event_id(clock_timestamp()) as id from event_outbox_before
    ), written as (
      insert into event (id, account_id, agent_id, type, object_kind, object_id, data, at)
      select id, account_id, agent_id, type, object_kind, object_id, data, at from moved
    )
    insert into event_outbox (event_id) select id from moved order by position;
  end if;
end $$;
drop table event_outbox_before;

-- What readers see. Sequences of one publication lie below those of the next: `order by last_sequence, sequence` reads it in order.
-- Transfers are never deleted, and only their state, hash and failure change: their events have only those. Older ones have it all.
create view published_event as
select p.account_id, p.last_sequence - cardinality(p.event_ids) + n.place as sequence, p.last_sequence, p.agent_id, e.id, e.type,
  e.object_kind, e.object_id,
  case when e.object_kind = 'transfer' and not e.data ? 'units' then (
    select jsonb_build_object('decisionId', t.decision_id, 'asset', t.token, 'units', t.units::text, 'chain', t.chain,
      'destination', t.destination, 'transactionHash', null, 'reason', null)
    from transfer t where t.id = e.object_id) || e.data else e.data end as data,
  e.at, p.tasks[n.place] as task, p.published_at
from event_publication p cross join lateral unnest(p.event_ids) with ordinality as n (event_id, place)
  join event e on e.id = n.event_id;
