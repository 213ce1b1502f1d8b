"""The kinds of values that generated code tells apart, one file for each."""
