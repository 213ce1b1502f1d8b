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
constexpr bool kAddsPairs = false; /* whether there is one instruction for what pairs.h does */
}  // namespace
}  // namespace dyncomp

#include "instances.h"

namespace dyncomp {
const GemmSet gemm_portable = {"portable",
                         DYNCOMP_F32(multiply_f32),
                         DYNCOMP_F64(multiply<double>),
                         DYNCOMP_F32(multiply_chain<float>),
                         DYNCOMP_F64(multiply_chain<double>),
                         DYNCOMP_F32(run_rows<float>),
                         DYNCOMP_F64(run_rows<double>),
                         DYNCOMP_F32(multiply_widened),
                         DYNCOMP_I8(multiply_bytes)};
}  // namespace dyncomp
