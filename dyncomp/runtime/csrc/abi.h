/* The ABI between generated code and the launcher. Any change raises
 * DYNCOMP_ABI_VERSION (part of every kernel's cache key), in build/library.py too.
 *
 * The part between BEGIN and END is copied as text into every generated translation unit
 * (abi_declarations in dyncomp/inductor/launch.py), so it includes nothing and is valid C and C++. Generated units export
 *
 *   extern "C" i64 NAME(void** buffers, const i64* syms, const Runtime* rt, i64* error);   (RunFunction)
 *   extern "C" void NAME(const i64* syms, i64* out);                                       (SizesFunction)
 *
 * buffers: one pointer per input (arrays: the data pointer; scalars and symbolic integers: a 0-d value),
 *          then per fresh output, per arena slot, per constant, in the plan's order.
 * syms:    the plan's symbolic sizes.
 * error:   up to four details of a failure; fill them and return k > 0 to raise the plan's error k - 1.
 *          Return 0 for success.
 * parallel_for(body, ctx, n, grain): calls body(ctx, lo, hi, tid) over disjoint ranges that cover [0, n).
 *          Every lo is a multiple of grain and every hi is one too or n, so work numbered by grain-sized
 *          blocks gives the same bits for every number of threads. 0 <= tid < num_threads is unique among
 *          bodies running at once in one call. Runs serially as body(ctx, 0, n, 0) if n <= grain, in a nested
 *          call, or with one thread.
 * branches(run, ctx, count): calls run(ctx, k) for every k in [0, count), in any order, several at the same time where
 *          there are threads; a parallel_for in one of them uses a part of the threads, with the same bits.
 * blas:    see DYNCOMP_BLAS_*; NULL where the process has no OpenBLAS with 64-bit integers.
 * blas_serial(1) has the BLAS use one thread per call until the matching blas_serial(0); calls nest and may
 *          come from several threads. Two pools of threads on the same cores slow each other down, so
 *          generated code cuts large products into blocks for parallel_for instead.
 * gemm_f32, gemm_f64: c = a b for each product of a batch (row-major over `axes` sizes); strides in elements, the
 *          columns of c contiguous. Where `done` is set it is called for each finished tile of c, by the
 *          thread that computed it: rows [row, row + rows) and columns [col, col + cols) of product number
 *          `product`, rows of the tile `tile_row` elements apart; c may then be NULL, and tiles are where they
 *          are only during the call. Runs on the pool. 1: no memory to pack into, c is unspecified; else 0.
 *          Where `windows` is set b is not a matrix but images (of each batch), and the product is with what the
 *          windows of a kernel see of them: column y * columns + x and row (channel * kernel[0] + i) * kernel[1] + j
 *          is the element at y * stride[0] + i * dilation[0] - padding[0] and likewise, 0 outside of `sizes`.
 *          `channel` and `step` (row, column) are the image's strides, none negative. Where `channels_last` is set
 *          it is the other way round: a is the images, whose channels lie innermost, b the kernels, row (i * kernel[1] + j)
 *          * channels + channel, and rows of c are places. Where `depthwise` is set channel i of the result is made of
 *          channel i of the image alone, and k is of one channel.
 *          Where `fill_a` or `fill_b` is set that operand is nowhere in memory: `fill` writes rows [row, row + rows) and
 *          columns [col, col + cols) of it at `to`, rows `to_row` elements apart; of an operand whose `row` stride is 1
 *          and `col` stride is not, "rows" are its columns. `b` is then what it is mostly made of, `bytes` long, and
 *          `kept` says that this and `side` stay as they are; `tag` tells apart what is made of the same place.
 *          Where `kept` is set b (where that is images, a) is often the same at every call, and its packed copy kept (kept.h).
 *          `tile_vectors`, `block_panels`, `block_rows`, `block_terms`: how the work is cut where that was measured (0: as
 *          the runtime finds best): vectors of a tile, then panels of b (of tiles' width), rows and terms that are worked
 *          on in one go. The bits do not depend on them. `way` (kWay...): how a convolution is made.
 * gemm_bf16: the same of a and b in bfloat16; c, and what `done` gets, is float32.
 * gemm_i8: the same of 8-bit integers, no windows; c, and what `done` gets, is int32, exact but that it wraps. `a_bytes` and
 *          `b_bytes` say of which kind (kSignedBytes, kUnsignedBytes). gemm_f32 takes `b_bytes` too (else 0), without
 *          windows: b is widened to float32 on the way.
 * chain_f32, chain_f64: two products over the same rows and batches. `done` of the first gets tiles of whole rows
 *          and makes of each the row of the second product's a, which it writes `tile_row / 2` elements behind;
 *          c of the first and a of the second are not used, nor is `done` of the second. Where `causal` of the first is
 *          set `done` makes zeros of columns from row + `seen` on: it gets tiles of fewer columns where the second's b
 *          has only finite rows from there on. Where `softmax` of the first is set (float32 only) the rows become
 *          softmax(factor * scores), rows of -inf alone 0 if it is 2, else NaN; `done` (or NULL) then writes the scores
 *          in place of the product, all but what is hidden, and makes no zeros.
 * rows_f32, rows_f64: steps for the same rows of several `matrices`, which have no memory, block of rows by block of
 *          rows (RowStep.kind): 0, a function makes rows of some of them from rows of others (matrix number k is at
 *          `rows` + k * `row_step` / matrices); 1, matrix = a b; 2, c = matrix b; 3, c = transposed matrix times b,
 *          summed over all rows. Without a `matrix` (-1) 2 and 3 read a. Some step is a 1: all matrices have the sizes
 *          and batches of its result. Neither `done` nor what is made or left out of operands is looked at.
 * timed, next_step: while `timed` is not 0 (read once, relaxed) an exported function calls next_step between two of its
 *          steps, so that profiles know when each began (spans.h).
 */
#ifndef DYNCOMP_ABI_H
#define DYNCOMP_ABI_H
#define DYNCOMP_ABI_VERSION 14
#ifdef __cplusplus
extern "C" {
#endif
/* BEGIN */
typedef long long i64;
typedef void (*BodyFunction)(void* ctx, i64 lo, i64 hi, int tid);
struct Windows {
  i64 columns;
  i64 sizes[2], kernel[2], stride[2], dilation[2], padding[2];
  i64 channel, step[2];
  i64 channels_last, depthwise;
};
struct Filling {
  void (*fill)(void* context, const void* to, i64 to_row, i64 product, i64 row, i64 rows, i64 col, i64 cols);
  void* context;
  i64 tag, bytes;
  int sides;
  const void* side[4];
  i64 side_bytes[4];
};
struct Gemm {
  i64 m, n, k;
  const void* a;
  i64 a_row, a_col;
  const void* b;
  i64 b_row, b_col;
  void* c;
  i64 c_row;
  int axes;
  i64 batch[8], a_batch[8], b_batch[8], c_batch[8];
  void (*done)(void* context, const void* tile, i64 tile_row, i64 product, i64 row, i64 rows, i64 col,
               i64 cols);
  void* context;
  const struct Windows* windows;
  i64 kept;
  i64 causal, seen;
  const struct Filling* fill_a;
  const struct Filling* fill_b;
  i64 softmax;
  double factor;
  i64 tile_vectors, block_panels, block_rows, block_terms, way;
  i64 a_bytes, b_bytes;
};
struct RowStep {
  i64 kind, matrix;
  const struct Gemm* gemm;
  void (*kernel)(void* context, const void* rows, i64 row_step, i64 product, i64 row, i64 count, i64 col,
                 i64 cols);
  void* context;
};
struct Runtime {
  void (*parallel_for)(BodyFunction body, void* ctx, i64 n, i64 grain);
  int num_threads;
  void* blas[16];
  void (*blas_serial)(int enter);
  int (*gemm_f32)(const struct Gemm*);
  int (*gemm_f64)(const struct Gemm*);
  int (*chain_f32)(const struct Gemm* first, const struct Gemm* second);
  int (*chain_f64)(const struct Gemm* first, const struct Gemm* second);
  int (*rows_f32)(const struct RowStep* steps, i64 count, i64 matrices);
  int (*rows_f64)(const struct RowStep* steps, i64 count, i64 matrices);
  int (*gemm_bf16)(const struct Gemm*);
  int (*gemm_i8)(const struct Gemm*);
  int timed;
  void (*next_step)(void);
  void (*branches)(void (*run)(void* ctx, i64 branch), void* ctx, i64 count);
};
/* END */
typedef struct Runtime Runtime;
typedef struct Gemm Gemm;
typedef struct RowStep RowStep;

/* Kinds of a RowStep. */
enum { kRowKernel = 0, kRowScores = 1, kRowOut = 2, kRowSum = 3 };

/* Ways of a convolution: the usual one, without sums of the image (Winograd's), by copies of what windows see, and by
 * shifts of one copy of the image where that can be. */
enum { kWayUsual = 0, kWayPlain = 1, kWayWindows = 2, kWayShifts = 3 };

/* Kinds of 8-bit integers (`a_bytes`, `b_bytes`). */
enum { kSignedBytes = 1, kUnsignedBytes = 2 };

typedef struct Filling Filling;
typedef i64 (*RunFunction)(void** buffers, const i64* syms, const Runtime* rt, i64* error);
typedef void (*SizesFunction)(const i64* syms, i64* out);

/* Entries of Runtime.blas: the CBLAS routines with 64-bit integer arguments. */
enum {
  DYNCOMP_BLAS_SGEMM = 0,
  DYNCOMP_BLAS_DGEMM = 1,
  DYNCOMP_BLAS_CGEMM = 2,
  DYNCOMP_BLAS_ZGEMM = 3,
  DYNCOMP_BLAS_SGEMV = 4,
  DYNCOMP_BLAS_DGEMV = 5,
  DYNCOMP_BLAS_CGEMV = 6,
  DYNCOMP_BLAS_ZGEMV = 7,
  DYNCOMP_BLAS_SDOT = 8,
  DYNCOMP_BLAS_DDOT = 9,
  DYNCOMP_BLAS_SSYRK = 10,
  DYNCOMP_BLAS_DSYRK = 11,
  DYNCOMP_BLAS_SET_NUM_THREADS = 12, /* void openblas_set_num_threads(int), or NULL */
  DYNCOMP_BLAS_COUNT = 16
};
#ifdef __cplusplus
}
#endif
#endif
