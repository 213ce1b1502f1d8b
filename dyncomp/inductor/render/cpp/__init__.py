"""The C++ renderer."""
