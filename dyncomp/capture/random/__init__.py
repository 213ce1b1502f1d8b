"""Random numbers: draws before the graph, and the states of generators."""
