-- Room for the one update that ends each row. On the row's own page the log holds only what changed, and no lock of the old row.
alter table transfer set (fillfactor = 60);
alter table reservation set (fillfactor = 60);
