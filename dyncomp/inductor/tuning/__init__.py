"""``max-autotune`` and tiers: forms of a graph, timed in turn, and the choices that are kept."""
