"""An experiment as a whole: what it asks for, what it will cost, how far it is, and what of it may go."""
