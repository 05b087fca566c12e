"""Tables and figures from counts, losses and scores; never imports torch."""
