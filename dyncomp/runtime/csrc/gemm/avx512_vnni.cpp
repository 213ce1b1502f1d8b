/* Products of 8-bit integers for AVX-512 with AVX512_VNNI. */
#include <cstddef>

#include "../kept.h"
#include "../pool.h"
#include "../scratch.h"
#include "gemm.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,fma")
namespace dyncomp {
namespace {
#include "avx512.h"
constexpr bool kAddsPairs = true;

#include "extend.h"

#include "tile.h"

#include "pack.h"

#include "blocks.h"

#include "blocking.h"

#include "pairs.h"

#include "vector.h"

#include "bytes.h"

}  // namespace

int multiply_bytes_vnni(const Gemm* gemm) { return multiply_bytes(gemm); }
}  // namespace dyncomp
#endif
