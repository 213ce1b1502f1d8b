/* Matrix products for AVX2 with FMA. */
#include <cstddef>

#include "../kept.h"
#include "../pool.h"
#include "../scratch.h"
#include "gemm.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
namespace dyncomp {
namespace {
constexpr int kVectorBytes = 32;
constexpr int kRegisters = 16;
constexpr int kTileVectors = 2;
constexpr int kTileRowsMost = 6;
}  // namespace
}  // namespace dyncomp

#include "instances.h"

namespace dyncomp {
const GemmSet gemm_avx2 = {"avx2", multiply<float>, multiply<double>,
                         multiply_chain<float>, multiply_chain<double>, run_rows<float>, run_rows<double>,
                         multiply_widened};
}  // namespace dyncomp
#endif
