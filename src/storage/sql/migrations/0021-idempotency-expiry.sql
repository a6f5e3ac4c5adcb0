-- Keys are written in the order in which they expire: an entry for each range of blocks finds the old ones. Without it, each sweep
-- read the keys of a whole day.
create index idempotency_expired on idempotency using brin (created_at) with (autosummarize = on);
