/* Matrix products for any processor. */
#include <cstddef>

#include "../kept.h"
#include "../pool.h"
#include "../scratch.h"
#include "gemm.h"

namespace dyncomp {
namespace {
constexpr int kVectorBytes = 16;
constexpr int kRegisters = 16;
constexpr int kTileVectors = 2;
constexpr int kTileRowsMost = 6;
}  // namespace
}  // namespace dyncomp

#include "instances.h"

namespace dyncomp {
const GemmSet gemm_portable = {"portable", multiply<float>, multiply<double>,
                         multiply_chain<float>, multiply_chain<double>, run_rows<float>, run_rows<double>,
                         multiply_widened};
}  // namespace dyncomp
