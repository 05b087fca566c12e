"""Studies: many small trainings that answer one question, with its hypotheses written down before they run."""
