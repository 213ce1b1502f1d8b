"""What derivatives are for: ``python -m demo.derivatives digits|equation|process``."""
