/* Matrix products of our own: packed, register-blocked, threaded, with a fused epilogue.
 *
 * The method is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a
 * tile of C is held in registers while a panel of B, packed so that it is read in order, streams past. A block of
 * B is packed into the second-level cache just before all rows of A that a thread has go over it. The same code is
 * compiled for several instruction sets (avx512.cpp, avx2.cpp, portable.cpp). Products of bfloat16 are such products of
 * what is widened (widen.h), or go by instructions of their own (avx512_bf16.cpp). So do those of 8-bit integers (bytes.h).
 *
 * Every element of C is summed by one thread, over k in order, in blocks that depend on the sizes and strides
 * alone: the bits do not depend on the number of threads.
 */
#ifndef DYNCOMP_GEMM_H
#define DYNCOMP_GEMM_H
#include "../../../inductor/render/cpp/csrc/quiet.h"
#include "../abi.h"

namespace dyncomp {

/* float32 and float64, bfloat16 summed in float32, and 8-bit integers summed in int32, for one instruction set; 1 if there
 * was no memory to pack into. */
struct GemmSet {
  const char* name;
  int (*f32)(const Gemm*);
  int (*f64)(const Gemm*);
  int (*chain_f32)(const Gemm*, const Gemm*);
  int (*chain_f64)(const Gemm*, const Gemm*);
  int (*rows_f32)(const RowStep*, i64, i64);
  int (*rows_f64)(const RowStep*, i64, i64);
  int (*bf16)(const Gemm*);
  int (*i8)(const Gemm*);
};

/* Libraries for C leave out what they do not call (archives/clib/sources.py). */
#ifdef DYNCOMP_WITHOUT_F32
#define DYNCOMP_F32(product) nullptr
#else
#define DYNCOMP_F32(product) product
#endif
#ifdef DYNCOMP_WITHOUT_F64
#define DYNCOMP_F64(product) nullptr
#else
#define DYNCOMP_F64(product) product
#endif
#ifdef DYNCOMP_WITHOUT_I8
#define DYNCOMP_I8(product) nullptr
#else
#define DYNCOMP_I8(product) product
#endif

extern const GemmSet gemm_avx512;
extern const GemmSet gemm_avx2;
extern const GemmSet gemm_portable;

/* The best set that this processor runs, or the one called `name`; NULL if it cannot run that. */
const GemmSet* gemm_set(const char* name);

/* Whether this processor runs operations of 512 bits in two halves, as it says of itself. */
bool gemm_halves_vectors();

/* Whether this processor multiplies bfloat16, and the product that does (avx512_bf16.cpp). */
bool gemm_has_brain();
int multiply_brain(const Gemm* gemm);

/* Whether this processor adds products of 16-bit integers to 32-bit ones in one instruction, and the product of bytes that
 * does (avx512_vnni.cpp). */
bool gemm_has_vnni();
int multiply_bytes_vnni(const Gemm* gemm);

}  // namespace dyncomp
#endif
