/* What kernels ask of the runtime, in a library without Python (dyncomp/archives/clib): memory, packed copies of the
 * library's weights, and nothing of BLAS and profiles. The pool and the products are the runtime's own. */
#include "../blas.h"
#include "../gemm/gemm.h"
#include "../kept.h"
#include "../pool.h"
#include "../scratch.h"
#include "services.h"

#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dyncomp {

#ifdef DYNCOMP_PRODUCTS /* the set for this library's processors */
bool gemm_has_brain() { return false; }
int multiply_brain(const Gemm*) { return 1; }
bool gemm_has_vnni() { return false; }
int multiply_bytes_vnni(const Gemm*) { return 1; }
#endif

void* scratch_allocate(size_t bytes) {
  constexpr size_t kLine = 64;
  if (bytes > SIZE_MAX / 2) return nullptr;
  return aligned_alloc(kLine, (bytes + kLine) / kLine * kLine);
}

void scratch_free(void* data) { free(data); }

void blas_serial(int) {}
void blas_after_fork_in_child() {}
void next_step() {}

namespace {

/* A copy of weights, packed for a product; made at its first use, for good: weights do not change. */
struct Copy {
  KeptKey key;
  void* data;
  Copy* next;
};

pthread_mutex_t copies_mutex = PTHREAD_MUTEX_INITIALIZER;
Copy* copies = nullptr;
const char* weights_from = nullptr;
const char* weights_to = nullptr;

bool are_weights(const void* from, i64 bytes) {
  const char* const at = static_cast<const char*>(from);
  return at >= weights_from && at < weights_to && bytes <= weights_to - at;
}

bool stays(const KeptKey& key, const KeptSides& sides) {
  const i64 last = (key.rows - 1) * key.row_step + (key.cols - 1) * key.col_step;
  if (last < 0 || !are_weights(key.data, (last + 1) * key.item)) return false;
  for (int k = 0; k < sides.count; ++k)
    if (!are_weights(sides.data[k], sides.bytes[k])) return false;
  return true;
}

void before_fork() { pthread_mutex_lock(&copies_mutex); }
void after_fork() { pthread_mutex_unlock(&copies_mutex); }

}  // namespace

KeptUse kept_take(const KeptKey& key, const KeptSides& sides, size_t bytes, FillFunction fill, const void* context) {
  KeptUse use = {nullptr, nullptr};
  if (!stays(key, sides)) return use;
  pthread_mutex_lock(&copies_mutex);
  Copy* copy = copies;
  while (copy && memcmp(&copy->key, &key, sizeof key) != 0) copy = copy->next;
  if (!copy) {
    copy = new (std::nothrow) Copy{key, scratch_allocate(bytes), copies};
    if (copy && !copy->data) {
      delete copy;
      copy = nullptr;
    }
    if (copy) {
      fill(context, copy->data);
      copies = copy;
    }
  }
  if (copy) use = {copy->data, copy};
  pthread_mutex_unlock(&copies_mutex);
  return use;
}

void kept_give_back(KeptUse) {}

KeptCounts kept_counts() {
  KeptCounts counts = {};
  counts.can_watch = weights_from != nullptr;
  return counts;
}

namespace {

__attribute__((constructor)) void start() {
  initialize_pool();
  pthread_atfork(before_fork, after_fork, after_fork);
#ifdef DYNCOMP_PRODUCTS
  use_products(&DYNCOMP_PRODUCTS);
#endif
}

}  // namespace
}  // namespace dyncomp

const struct Runtime* dyncomp_services(void) { return &dyncomp::runtime_table; }

void dyncomp_set_num_threads(int count) {
  dyncomp::set_num_threads(count < 1 ? 1 : count > dyncomp::kMaxThreads ? dyncomp::kMaxThreads : count);
}

void dyncomp_keep_copies(const void* weights, long long bytes) {
  dyncomp::weights_from = static_cast<const char*>(weights);
  dyncomp::weights_to = dyncomp::weights_from + bytes;
}
