"""From C++ text to loaded machine code: compilers, builds, and the cache of shared libraries on disk."""
