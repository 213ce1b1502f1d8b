"""From Python bytecode to graphs, and back to code that uses them."""
