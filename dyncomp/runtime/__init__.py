"""What compiled code runs on: launcher, thread pool, caching allocator (C++, in ``_launch``)."""

from dyncomp.runtime._launch import (
    cached_bytes,
    kept_copies,
    num_threads,
    release_memory,
    set_cache_limit,
    set_num_threads,
)

__all__ = [
    "cached_bytes",
    "kept_copies",
    "num_threads",
    "release_memory",
    "set_cache_limit",
    "set_num_threads",
]
