"""The Triton renderer."""
