"""What an archive consists of."""

FORMAT = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
GRAPH = "graph.txt"
ALIGNMENT = 64  # of weights, in bytes


def kernels_of(level: str) -> str:
    """The name of the shared object for a level of processors."""
    return f"kernels/{level}.so"
