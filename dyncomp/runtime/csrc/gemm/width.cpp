/* Whether this processor runs 512 bits at once. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "gemm.h"

namespace dyncomp {
namespace {

#if defined(__x86_64__)
/* AMD64 Architecture Programmer's Manual, volume 3, "Performance Optimization Identifiers": the width of the data path.
 * Others have no such leaf, or an empty one. */
bool has_path_of_256() {
  constexpr unsigned kLeaf = 0x8000001A, kPath256 = 1u << 2, kPath512 = 1u << 3;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kLeaf, &a, &b, &c, &d) && (a & kPath256) && !(a & kPath512);
}
#else
bool has_path_of_256() { return false; }
#endif

}  // namespace

bool gemm_halves_vectors() {
  static const bool halves = has_path_of_256();
  return halves;
}

}  // namespace dyncomp
