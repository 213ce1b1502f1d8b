/* Which instruction set this processor runs. */
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

bool runs_brain() { return runs_avx512() && __builtin_cpu_supports("avx512bf16"); }

bool runs_vnni() { return runs_avx512() && __builtin_cpu_supports("avx512vnni"); }
#else
bool runs_brain() { return false; }

bool runs_vnni() { return false; }
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

bool gemm_has_brain() {
  static const bool has = runs_brain();
  return has;
}

bool gemm_has_vnni() {
  static const bool has = runs_vnni();
  return has;
}

#if !defined(__x86_64__)
int multiply_brain(const Gemm*) { return 1; }
int multiply_bytes_vnni(const Gemm*) { return 1; }
#endif

}  // namespace dyncomp
