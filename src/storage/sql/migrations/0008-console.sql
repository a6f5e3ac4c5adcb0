-- For an account's activity: money that was frozen because the chain lacks it, and money that was released again.
create index posting_frozen on posting (source) where right(destination, 7) = ':frozen';
create index posting_released on posting (destination) where right(source, 7) = ':frozen';
