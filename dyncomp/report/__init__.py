"""What a user sees of a compilation: ``explain``, its HTML page, dumped forms and their re-run."""
