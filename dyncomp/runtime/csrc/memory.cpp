/* The caching allocator: page faults cost more than most kernels (FACTS: 1.7 us per 4 KB), so large blocks
 * are kept in free lists by size class and handed out again, last in first out, up to a limit in bytes.
 *
 * Classes are eighths of a power of two, so at most 12.5% of a block is unused (and never touched). A table
 * of live blocks gives each one's true size: what NumPy says at free time is not relied upon.
 */
#include "memory.h"

#include "limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#define NO_IMPORT_ARRAY
#include "numpy_api.h"

/* Up to CPython 3.13 its header declares these without extern "C", so C++ would look for mangled names. */
extern "C" int trace_block(unsigned int domain, uintptr_t block, size_t size) __asm__("PyTraceMalloc_Track");
extern "C" int untrace_block(unsigned int domain, uintptr_t block) __asm__("PyTraceMalloc_Untrack");

namespace dyncomp {
namespace {

constexpr size_t kHugePage = 2u << 20;
constexpr size_t kSmallestClass = 64u << 10;

struct CachedBlock {
  void* data;
  size_t size;
};

struct Cache {
  std::mutex mutex;
  std::list<CachedBlock> idle;  /* most recently freed first */
  std::unordered_map<size_t, std::vector<std::list<CachedBlock>::iterator>> by_size;
  std::unordered_map<void*, size_t> live;
  size_t idle_bytes = 0;
  size_t limit = 0;
};

/* A thirty-second of the memory that the machine has, or that the process may use, within [16 MiB, 1 GiB]. */
size_t default_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 256u << 20;
  double bytes = static_cast<double>(pages) * static_cast<double>(page);
  const double allowed = group_limits("").bytes;
  if (allowed > 0 && allowed < bytes) bytes = allowed;
  const double share = bytes / 32;
  if (share < (16u << 20)) return 16u << 20;
  return share > (1u << 30) ? (1u << 30) : static_cast<size_t>(share);
}

/* Never destroyed: arrays may be freed during interpreter exit. */
Cache& cache() {
  static Cache* const the_cache = [] {
    Cache* made = new Cache();
    made->limit = default_limit();
    return made;
  }();
  return *the_cache;
}

/* A fork waits for the threads that are in here: in the child nobody would open the lock that they hold, nor finish
 * what they were changing. */
void before_fork() { cache().mutex.lock(); }
void after_fork_in_parent() { cache().mutex.unlock(); }
void after_fork_in_child() { new (&cache().mutex) std::mutex(); }

/* 0 if the size is absurd. */
size_t class_of(size_t bytes) {
  if (bytes > static_cast<size_t>(PY_SSIZE_T_MAX) - kHugePage) return 0;
  if (bytes <= kSmallestClass) return kSmallestClass;
  const int log2 = 63 - __builtin_clzll(bytes);
  size_t step = static_cast<size_t>(1) << (log2 - 3);
  if (step < 4096) step = 4096;
  return (bytes + step - 1) / step * step;
}

void* map_memory(size_t size) {
  const bool huge = size >= kHugePageFrom;
  const size_t asked = huge ? size + kHugePage : size;
  void* raw = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!huge) return raw;
  /* Trim to a huge-page boundary. */
  char* const begin = static_cast<char*>(raw);
  char* const data =
      reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + kHugePage - 1) & ~(uintptr_t)(kHugePage - 1));
  if (data > begin) munmap(begin, static_cast<size_t>(data - begin));
  const size_t tail = asked - size - static_cast<size_t>(data - begin);
  if (tail) munmap(data + size, tail);
  madvise(data, size, MADV_HUGEPAGE);
  return data;
}

/* Under the mutex. */
void* take_idle(Cache& c, size_t size) {
  auto found = c.by_size.find(size);
  if (found == c.by_size.end() || found->second.empty()) return nullptr;
  auto block = found->second.back();
  found->second.pop_back();
  void* data = block->data;
  c.idle_bytes -= size;
  c.idle.erase(block);
  return data;
}

/* Under the mutex. Drops the least recently freed block. */
void drop_oldest(Cache& c) {
  const CachedBlock oldest = c.idle.back();
  auto last = std::prev(c.idle.end());
  auto& same_size = c.by_size[oldest.size];
  for (size_t i = 0; i < same_size.size(); ++i) {
    if (same_size[i] != last) continue;
    same_size.erase(same_size.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  c.idle.erase(last);
  c.idle_bytes -= oldest.size;
  munmap(oldest.data, oldest.size);
}

size_t shrink_to(Cache& c, size_t bytes) {
  const size_t before = c.idle_bytes;
  while (c.idle_bytes > bytes) drop_oldest(c);
  return before - c.idle_bytes;
}

void* allocate_locked(Cache& c, size_t size) {
  void* data = take_idle(c, size);
  if (!data) data = map_memory(size);
  if (!data && shrink_to(c, 0)) data = map_memory(size);
  if (!data) return nullptr;
  try {
    c.live.emplace(data, size);
  } catch (const std::bad_alloc&) {
    munmap(data, size);
    return nullptr;
  }
  return data;
}

void free_locked(Cache& c, void* data) {
  auto found = c.live.find(data);
  if (found == c.live.end()) return;
  const size_t size = found->second;
  c.live.erase(found);
  if (size > c.limit) {
    munmap(data, size);
    return;
  }
  shrink_to(c, c.limit - size);
  try {
    c.idle.push_front({data, size});
    try {
      c.by_size[size].push_back(c.idle.begin());
    } catch (const std::bad_alloc&) {
      c.idle.pop_front();
      throw;
    }
    c.idle_bytes += size;
  } catch (const std::bad_alloc&) {
    munmap(data, size);
  }
}

constexpr unsigned kNumPyTraceDomain = 389047;

/* NumPy's handler entries. It tells tracemalloc about its own arrays only inside PyDataMem_UserNEW, which
 * fresh outputs bypass, so blocks report themselves; UserFREE untracks. */
void* handler_malloc(void*, size_t bytes) { return block_allocate(bytes); }

void* handler_calloc(void*, size_t count, size_t item) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, item, &bytes)) return nullptr;
  void* data = block_allocate(bytes);
  if (data) memset(data, 0, bytes);
  return data;
}

void handler_free(void*, void* data, size_t) { block_free(data); }

void* handler_realloc(void*, void* old, size_t bytes) {
  if (!old) return block_allocate(bytes);
  const size_t have = block_size(old);
  if (have && class_of(bytes) == have) return old;
  void* data = block_allocate(bytes);
  if (!data) return nullptr;
  memcpy(data, old, have < bytes ? have : bytes);
  block_free(old);
  return data;
}

/* The same for arrays of any size: small ones come from the C library. Used while library functions run, whose
 * results and temporaries would fault their pages in anew at every call. */
void* mixed_malloc(void*, size_t bytes) { return bytes >= kLargeBlock ? block_allocate(bytes) : malloc(bytes ? bytes : 1); }

void* mixed_calloc(void* context, size_t count, size_t item) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, item, &bytes)) return nullptr;
  return bytes >= kLargeBlock ? handler_calloc(context, count, item) : calloc(count ? count : 1, item ? item : 1);
}

void mixed_free(void*, void* data, size_t) {
  if (!data) return;
  if (block_size(data))
    block_free(data);
  else
    free(data);
}

void* mixed_realloc(void* context, void* old, size_t bytes) {
  if (!old) return mixed_malloc(context, bytes);
  return block_size(old) ? handler_realloc(context, old, bytes) : realloc(old, bytes ? bytes : 1);
}

PyDataMem_Handler library_handler = {
    "dyncomp_library_allocator", 1, {nullptr, mixed_malloc, mixed_calloc, mixed_realloc, mixed_free}};

PyDataMem_Handler handler = {
    "dyncomp_caching_allocator", 1, {nullptr, handler_malloc, handler_calloc, handler_realloc, handler_free}};

}  // namespace

void initialize_memory() {
  static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
}

void* scratch_allocate(size_t bytes) {
  const size_t size = class_of(bytes);
  if (!size) return nullptr;
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  return allocate_locked(c, size);
}

void scratch_free(void* data) {
  if (!data) return;
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  free_locked(c, data);
}

/* tracemalloc takes the interpreter's lock, whose holder may be waiting for the mutex: told outside of it. */
void* block_allocate(size_t bytes) {
  void* data = scratch_allocate(bytes);
  if (data) trace_block(kNumPyTraceDomain, reinterpret_cast<uintptr_t>(data), bytes);
  return data;
}

void block_free(void* data) {
  if (!data) return;
  untrace_block(kNumPyTraceDomain, reinterpret_cast<uintptr_t>(data));
  scratch_free(data);
}

void block_drop(void* data) {
  untrace_block(kNumPyTraceDomain, reinterpret_cast<uintptr_t>(data));
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  auto found = c.live.find(data);
  if (found == c.live.end()) return;
  munmap(data, found->second);
  c.live.erase(found);
}

size_t block_size(void* data) {
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  auto found = c.live.find(data);
  return found == c.live.end() ? 0 : found->second;
}

size_t cached_bytes() {
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  return c.idle_bytes;
}

size_t cache_limit() {
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  return c.limit;
}

void set_cache_limit(size_t limit) {
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  c.limit = limit;
  shrink_to(c, limit);
}

size_t release_cached_blocks() {
  Cache& c = cache();
  std::lock_guard<std::mutex> hold(c.mutex);
  return shrink_to(c, 0);
}

PyObject* library_memory_handler() {
  static PyObject* capsule = nullptr;
  if (!capsule) capsule = PyCapsule_New(&library_handler, "mem_handler", nullptr);
  return capsule;
}

PyObject* numpy_memory_handler() {
  static PyObject* capsule = nullptr;
  if (!capsule) capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
  return capsule;
}

}  // namespace dyncomp
