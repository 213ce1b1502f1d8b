"""What Python objects look like while a function is captured."""
