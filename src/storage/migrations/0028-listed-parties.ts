/** A person's decision on Travel Rule data that names somebody on a sanctions list. */
export const listedParties = `
-- Who decided, and why. One decision for the data, and none is changed.
create table travel_rule_decision (
  travel_rule_id text collate "C" primary key references travel_rule,
  decided_by text not null references account,
  verdict text not null check (verdict in ('approve', 'reject')),
  reason text not null,
  decided_at timestamptz not null
);
create index travel_rule_listed on travel_rule (id) where status = 'declined' and vasp_name is null;
`
