/* Products and convolutions of bfloat16 for AVX-512 with AVX512_BF16. */
#include <cstddef>

#include "../kept.h"
#include "../pool.h"
#include "../scratch.h"
#include "gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,fma")
namespace dyncomp {
namespace {
#include "avx512.h"

#include "extend.h"

#include "tile.h"

#include "pack.h"

#include "windows.h"

#include "blocks.h"

#include "blocking.h"

#include "brain_tile.h"

#include "brain.h"

#include "terms.h"

#include "brain_terms.h"

#include "shifts.h"

#include "places.h"

#include "brain_windows.h"

}  // namespace

int multiply_brain(const Gemm* gemm) { return gemm->windows ? convolve_pairs(*gemm) : multiply_pairs(gemm); }
}  // namespace dyncomp
#endif
