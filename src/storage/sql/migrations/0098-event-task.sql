-- What the spend or key of an event is labeled with; null: nothing.
alter table event add column task text;
