"""One file per text, called as the file of the text is."""
