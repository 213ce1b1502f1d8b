/* Matrix products for AVX-512. */
#include <cstddef>

#include "../kept.h"
#include "../pool.h"
#include "../scratch.h"
#include "gemm.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
namespace dyncomp {
namespace {
#include "avx512.h"
}  // namespace
}  // namespace dyncomp

#include "instances.h"

namespace dyncomp {
namespace {
int multiply_bf16(const Gemm* gemm) {
  const bool depthwise = gemm->windows && gemm->windows->depthwise;
  return gemm_has_brain() && !depthwise ? multiply_brain(gemm) : multiply_widened(gemm);
}
}  // namespace
}  // namespace dyncomp

namespace dyncomp {
const GemmSet gemm_avx512 = {"avx512", multiply<float>, multiply<double>,
                         multiply_chain<float>, multiply_chain<double>, run_rows<float>, run_rows<double>,
                         multiply_bf16};
}  // namespace dyncomp
#endif
