/* Copies of operands that stay as they are from call to call: see kept.cpp. */
#ifndef DYNCOMP_KEPT_H
#define DYNCOMP_KEPT_H
#include <cstddef>

#include "abi.h"

namespace dyncomp {

/* A matrix in memory, and the width of the panels that it is copied into. */
struct KeptKey {
  const void* data;
  i64 rows, cols, row_step, col_step, item, panel;
  i64 tag; /* what is copied: 0 for the matrix as it is, else something made of it */
};

/* What else a copy is made of: a few bytes, which are compared. */
struct KeptSides {
  int count;
  const void* const* data;
  const i64* bytes;
};

/* Writes the copy of a matrix. */
typedef void (*FillFunction)(const void* context, void* to);

/* A use of a copy; `data` is NULL where there is none. */
struct KeptUse {
  const void* data;
  void* copy;
};

/* The copy (of so many bytes) of what a matrix holds now, made where it has been the same matrix for some calls. Not
 * from within parallel_for. */
KeptUse kept_take(const KeptKey& key, const KeptSides& sides, size_t bytes, FillFunction fill, const void* context);
void kept_give_back(KeptUse use);

struct KeptCounts {
  bool can_watch;
  size_t copies, bytes, hits, changed;
};
KeptCounts kept_counts();

/* Drops all copies, and what is known of matrices; the number of bytes. */
size_t kept_release();

/* Registers the fork handler; called once, at import. */
void initialize_kept();

}  // namespace dyncomp
#endif
