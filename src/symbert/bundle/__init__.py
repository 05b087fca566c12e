"""One citable archive of finished results, with what a reader needs to judge and repeat them."""
