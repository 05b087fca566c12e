"""One file per figure, called as the files of the figure are."""
