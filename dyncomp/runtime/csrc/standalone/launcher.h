/* What launchers of libraries for C are made of (dyncomp/archives/clib): checks of what the caller gives, scratch memory,
 * copies of strided results. Copied as text into each of them, behind the names and messages of errors (header.py). GNU
 * C, for any processor. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long long i64;
/* Sizes are computed in this type and looked at before they become an i64. */
typedef __int128 wide;

#define LARGEST_DIMENSION ((i64)1 << 40)
#define LARGEST_ARRAY ((wide)1 << 47) /* bytes: what can be addressed */
#define LARGEST_SIZE ((wide)1 << 62)
#define LINE 64

static __thread char details[320];

static __attribute__((format(printf, 2, 3), unused, noinline)) int fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(details, sizeof details, format, arguments);
  va_end(arguments);
  return code;
}

static inline __attribute__((unused)) wide size_floordiv(wide a, wide b) {
  if (b == 0) return -LARGEST_SIZE * 2; /* no size */
  const wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline __attribute__((unused)) wide size_mod(wide a, wide b) { return b == 0 ? 0 : a - size_floordiv(a, b) * b; }
static inline __attribute__((unused)) wide size_min(wide a, wide b) { return a < b ? a : b; }
static inline __attribute__((unused)) wide size_max(wide a, wide b) { return a > b ? a : b; }

/* `fixed`: the dimensions that the function was exported for, -1 where any will do. */
static __attribute__((unused)) int check_shape(const char* name, const int64_t* shape, const i64* fixed, int rank, int item) {
  wide bytes = item;
  for (int d = 0; d < rank; ++d) {
    if (fixed[d] >= 0 && shape[d] != fixed[d])
      return fail(kBadShape, "%s: dimension %d is %lld, not %lld", name, d, (i64)shape[d], fixed[d]);
    if (shape[d] < 0 || shape[d] > LARGEST_DIMENSION)
      return fail(kBadShape, "%s: dimension %d is %lld", name, d, (i64)shape[d]);
    if (shape[d] > 0) bytes *= shape[d];
    if (bytes > LARGEST_ARRAY) return fail(kBadShape, "%s: the shape is too large for any memory", name);
  }
  return kOk;
}

/* The number of elements of an array to be made, or -1. */
static __attribute__((unused)) i64 count_of(const char* name, const i64* shape, int rank, int item) {
  wide bytes = item;
  int empty = 0;
  for (int d = 0; d < rank; ++d) {
    if (shape[d] < 0) return fail(kBadShape, "%s: dimension %d would be %lld", name, d, shape[d]), -1;
    empty |= shape[d] == 0;
    if (shape[d] > 0) bytes *= shape[d];
    if (bytes > LARGEST_ARRAY) return fail(kBadShape, "%s would be too large for any memory", name), -1;
  }
  return empty ? 0 : (i64)(bytes / item);
}

static __attribute__((unused)) int check_pointer(const char* name, const void* data, i64 count, int alignment) {
  if (!data && count) return fail(kBadPointer, "%s is NULL", name);
  if ((uintptr_t)data % (uintptr_t)alignment) return fail(kBadPointer, "%s is not aligned to %d bytes", name, alignment);
  return kOk;
}

static __attribute__((unused)) int check_room(const char* name, const void* data, i64 room, i64 count, int alignment) {
  if (room < count) return fail(kNoRoom, "%s has room for %lld elements, not %lld", name, room, count);
  return check_pointer(name, data, count, alignment);
}

/* The bytes of an array, relative to its first element. Strides in elements. */
typedef struct {
  i64 low, high;
} Reach;

static __attribute__((unused)) Reach reach_of(const i64* shape, const i64* strides, int rank, int item) {
  Reach reach = {0, 0};
  for (int d = 0; d < rank; ++d)
    if (shape[d] == 0) return reach;
  for (int d = 0; d < rank; ++d) {
    const i64 last = (shape[d] - 1) * strides[d] * item;
    if (last < 0)
      reach.low += last;
    else
      reach.high += last;
  }
  reach.high += item;
  return reach;
}

static inline __attribute__((unused)) int lies_in(Reach part, i64 offset, Reach whole) {
  return part.low == part.high || (offset + part.low >= whole.low && offset + part.high <= whole.high);
}

typedef struct {
  const char* name;
  const char* data;
  Reach reach;
  int written;
} Area;

static __attribute__((unused)) int check_overlap(const Area* areas, int count) {
  for (int i = 0; i < count; ++i) {
    if (!areas[i].written || !areas[i].data || areas[i].reach.low == areas[i].reach.high) continue;
    for (int k = 0; k < count; ++k) {
      if (k == i || (areas[k].written && k < i) || !areas[k].data || areas[k].reach.low == areas[k].reach.high) continue;
      const uintptr_t a = (uintptr_t)areas[i].data, b = (uintptr_t)areas[k].data;
      if (a + (uintptr_t)areas[i].reach.low < b + (uintptr_t)areas[k].reach.high &&
          b + (uintptr_t)areas[k].reach.low < a + (uintptr_t)areas[i].reach.high)
        return fail(kOverlap, "%s, which is written to, overlaps %s", areas[i].name, areas[k].name);
    }
  }
  return kOk;
}

/* Rows one behind the other at `to`; the next free byte. Strides in elements. */
static __attribute__((unused)) char* copy_rows(char* to, const char* from, const i64* shape, const i64* strides, int rank,
                                               int item) {
  if (rank == 0) {
    memcpy(to, from, (size_t)item);
    return to + item;
  }
  if (rank == 1) {
    const i64 count = shape[0], step = strides[0] * item;
    if (strides[0] == 1) {
      memcpy(to, from, (size_t)(count * item));
    } else if (item == 4) { /* sizes that the compiler knows */
      for (i64 k = 0; k < count; ++k) memcpy(to + k * 4, from + k * step, 4);
    } else if (item == 8) {
      for (i64 k = 0; k < count; ++k) memcpy(to + k * 8, from + k * step, 8);
    } else {
      for (i64 k = 0; k < count; ++k) memcpy(to + k * item, from + k * step, (size_t)item);
    }
    return to + count * item;
  }
  for (i64 k = 0; k < shape[0]; ++k) to = copy_rows(to, from + k * strides[0] * item, shape + 1, strides + 1, rank - 1, item);
  return to;
}

/* Scratch memory: one block waits for the next call, whatever thread makes it. */
typedef struct {
  i64 bytes;
} Block;

static Block* idle_block;

static Block* take_block(wide bytes) {
  Block* block = __atomic_exchange_n(&idle_block, (Block*)0, __ATOMIC_ACQ_REL);
  if (block && block->bytes >= bytes) return block;
  free(block);
  if (bytes > LARGEST_ARRAY) return 0;
  const size_t size = ((size_t)bytes + LINE) / LINE * LINE;
  block = aligned_alloc(LINE, size + LINE);
  if (block) block->bytes = (i64)size;
  return block;
}

static inline char* data_of(Block* block) { return (char*)block + LINE; }

static void give_block(Block* block) { free(__atomic_exchange_n(&idle_block, block, __ATOMIC_ACQ_REL)); }
