"""The loop IR: statements, index arithmetic, dependences, verifier, text form and reference executor."""
