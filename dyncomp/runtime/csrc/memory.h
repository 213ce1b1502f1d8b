/* Large blocks that are kept for reuse, and NumPy's view of them. */
#ifndef DYNCOMP_MEMORY_H
#define DYNCOMP_MEMORY_H
#include <Python.h>

#include <cstddef>

#include "scratch.h"

namespace dyncomp {

constexpr size_t kLargeBlock = 128u << 10;  /* from here on blocks are cached: malloc gives such back to the system */
constexpr size_t kSharedArena = 1u << 20;   /* from here on graphs share their scratch memory */
constexpr size_t kHugePageFrom = 4u << 20;  /* from here on huge pages are asked for */
constexpr size_t kAlignment = 64;

/* Once, before anything else: prepares for forks. */
void initialize_memory();

/* Page-aligned memory, from the free lists if they have it. NULL when the system has none left. Thread-safe. */
void* block_allocate(size_t bytes);

/* Back to the free lists, or to the system above the limit. */
void block_free(void* data);

/* Back to the system. */
void block_drop(void* data);

/* Bytes usable at `data`, or 0 if it is not a block of ours. */
size_t block_size(void* data);

size_t cached_bytes();
size_t cache_limit();
void set_cache_limit(size_t limit);

/* Give every cached block back to the system; the number of bytes. */
size_t release_cached_blocks();

/* A borrowed PyDataMem_Handler capsule over block_allocate and block_free; NULL with an exception set. */
PyObject* numpy_memory_handler();

/* The same for arrays of any size: large blocks cached, small ones from the C library. */
PyObject* library_memory_handler();

}  // namespace dyncomp
#endif
