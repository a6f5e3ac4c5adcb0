/** What comes back: deposits that the bank takes back. */
export const returns = `
alter table deposit
  -- What the bank took back and its owner did not have: collected from the owner's cash when there is some.
  add column owed bigint check (owed >= 0);
create index deposit_owed on deposit (id) where owed > 0;
`
