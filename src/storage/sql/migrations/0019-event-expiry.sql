-- Events are written in the order in which they expire, and are deleted in bulk: an entry for each range of blocks finds them. The
-- entry for each event was read only to delete it.
drop index event_expired;
create index event_expired on event using brin (published_at);
