"""One file per table, called as the files of the table are."""
