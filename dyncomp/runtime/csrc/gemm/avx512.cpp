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
constexpr bool kAddsPairs = false;
}  // namespace
}  // namespace dyncomp

#include "instances.h"

#ifndef DYNCOMP_WITHOUT_I8
namespace dyncomp {
namespace {
int multiply_i8(const Gemm* gemm) { return gemm_has_vnni() ? multiply_bytes_vnni(gemm) : multiply_bytes(gemm); }
}  // namespace
}  // namespace dyncomp
#endif

#ifndef DYNCOMP_WITHOUT_F32
namespace dyncomp {
namespace {
int multiply_bf16(const Gemm* gemm) {
  const bool depthwise = gemm->windows && gemm->windows->depthwise;
  return gemm_has_brain() && !depthwise ? multiply_brain(gemm) : multiply_widened(gemm);
}
}  // namespace
}  // namespace dyncomp
#endif

namespace dyncomp {
const GemmSet gemm_avx512 = {"avx512",
                         DYNCOMP_F32(multiply_f32),
                         DYNCOMP_F64(multiply<double>),
                         DYNCOMP_F32(multiply_chain<float>),
                         DYNCOMP_F64(multiply_chain<double>),
                         DYNCOMP_F32(run_rows<float>),
                         DYNCOMP_F64(run_rows<double>),
                         DYNCOMP_F32(multiply_bf16),
                         DYNCOMP_I8(multiply_i8)};
}  // namespace dyncomp
#endif
