"""Collections of PyTorch models that nobody here wrote, or that were written as people write them: each is
compiled, called and trained beside eager torch (``python -m tests.models``)."""
