"""From canonical instructions to C++: versions of blocks, operations, calls."""
