"""From a finished trace to the code that stands in for the original."""
