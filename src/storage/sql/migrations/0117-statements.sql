-- For statements: an account's money that left to the world or came from it, and what moved between two accounts of the gateway. What
-- moves between the places of one account is in none of them.
create index posting_left on posting (source) where left(source, 5) = 'acct_' and left(destination, 5) <> 'acct_';
create index posting_credited on posting (destination)
  where left(destination, 5) = 'acct_' and left(source, 5) <> 'acct_' and left(source, 9) <> 'external:';
create index posting_given on posting (source)
  where left(source, 5) = 'acct_' and left(destination, 5) = 'acct_' and split_part(source, ':', 1) <> split_part(destination, ':', 1);
create index posting_got on posting (destination)
  where left(source, 5) = 'acct_' and left(destination, 5) = 'acct_' and split_part(source, ':', 1) <> split_part(destination, ':', 1);
