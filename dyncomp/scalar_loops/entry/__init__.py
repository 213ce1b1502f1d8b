"""How a compiled loop is entered and left, and when."""
