-- [{above, count}]: above that amount of USD so many different people must agree. Null: nobody is asked by it.
alter table account add column quorums jsonb;

-- Of how many people the approval needs the yes, and the person who asked; null: a key did. A person's own call is made again by them.
alter table approval add column needed int not null default 1;
alter table approval add column asker_id text collate "C" references account;
alter table approval alter column key_id drop not null;
alter table approval add check ((key_id is null) <> (asker_id is null));
create index approval_of_asker on approval (asker_id, fingerprint) where asker_id is not null;

-- Who has agreed to an approval. It counts while the person may decide.
create table approval_vote (
  approval_id text collate "C" not null references approval on delete cascade,
  person_id text collate "C" not null references account,
  at timestamptz not null,
  primary key (approval_id, person_id)
);
