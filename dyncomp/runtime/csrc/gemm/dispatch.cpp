/* Which instruction set this processor runs. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstring>

#include "gemm.h"

namespace dyncomp {
namespace {

struct Choice {
  const GemmSet* set;
  bool (*runs)();
};

#if defined(__x86_64__)
bool runs_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma");
}

bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/* AMD64 Architecture Programmer's Manual, volume 3, "Performance Optimization Identifiers": the width of the data path.
 * Others have no such leaf, or an empty one. */
bool has_path_of_256() {
  constexpr unsigned kLeaf = 0x8000001A, kPath256 = 1u << 2, kPath512 = 1u << 3;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kLeaf, &a, &b, &c, &d) && (a & kPath256) && !(a & kPath512);
}

bool runs_brain() { return runs_avx512() && __builtin_cpu_supports("avx512bf16"); }
#else
bool has_path_of_256() { return false; }
bool runs_brain() { return false; }
#endif

bool always() { return true; }

const Choice choices[] = {
#if defined(__x86_64__)
    {&gemm_avx512, runs_avx512},
    {&gemm_avx2, runs_avx2},
#endif
    {&gemm_portable, always},
};

}  // namespace

const GemmSet* gemm_set(const char* name) {
  for (const Choice& choice : choices)
    if ((!name || strcmp(name, choice.set->name) == 0) && choice.runs()) return choice.set;
  return nullptr;
}

bool gemm_halves_vectors() {
  static const bool halves = has_path_of_256();
  return halves;
}

bool gemm_has_brain() {
  static const bool has = runs_brain();
  return has;
}

#if !defined(__x86_64__)
int multiply_brain(const Gemm*) { return 1; }
#endif

}  // namespace dyncomp
