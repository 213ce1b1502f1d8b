/* Programs over blocks of rows: products, functions of whole rows, and products with what these make, for the same
 * rows of several matrices that have no memory. Included once per instruction set.
 *
 * This is the backward pass of attention (Dao, "FlashAttention-2", 2023): scores, weights and their gradients are made
 * for some rows at a time, in the second-level cache, and multiplied there. Sums over all rows are made block by block,
 * in order, by one thread for each product; where there are few products their rows are cut into pieces, whose sums are
 * added in order. Pieces and blocks depend on the sizes alone, and so do the bits.
 */

/* Products and pieces of products that there should be at least, for several threads. */
constexpr i64 kRowPieces = 8;

template <class T>
struct RowProgram {
  const RowStep* steps;
  i64 count, matrices;
  const Gemm* any; /* a product into the rows: its sizes are those of all matrices */
  i64 products = 1, rows_per_block, blocks, half, row_step, pieces = 1, blocks_per_piece;
  i64 turned_size = 0; /* elements of the copies of operands whose columns are contiguous */
  i64 sum_size = 0;    /* elements of the sums over rows, of one product */
  T* sums = nullptr;   /* those of all pieces but the first, of all products */
  int failed = 0;

  RowProgram(const RowStep* list, i64 length, i64 held) : steps(list), count(length), matrices(held), any(nullptr) {
    for (i64 k = 0; k < count && !any; ++k)
      if (steps[k].kind == kRowScores) any = steps[k].gemm;
    constexpr i64 kWidth = Lanes<T>::kWidth;
    half = (ceil_div(any->n, kWidth) | 1) * kWidth;
    row_step = matrices * half;
    for (int axis = 0; axis < any->axes; ++axis) products *= any->batch[axis];
    for (i64 k = 0; k < count; ++k) {
      if (is_turned(steps[k])) turned_size += half * steps[k].gemm->k;
      if (steps[k].kind == kRowSum) sum_size += steps[k].gemm->m * steps[k].gemm->n;
    }
    const i64 fitting = kChainBytes / static_cast<i64>(sizeof(T)) / row_step;
    const i64 rows = least(kChainRows, fitting) / kChainRowsStep * kChainRowsStep;
    rows_per_block = most(1, least(any->m, most(rows, kChainRowsStep)));
    blocks = ceil_div(any->m, rows_per_block);
    if (products == 0 || blocks == 0) return;
    pieces = sum_size == 0 ? blocks : least(blocks, products < kRowPieces ? ceil_div(kRowPieces, products) : 1);
    blocks_per_piece = ceil_div(blocks, pieces);
    pieces = ceil_div(blocks, blocks_per_piece);
  }

  static bool is_turned(const RowStep& step) {
    return step.kind == kRowScores && step.gemm->b_row == 1 && step.gemm->b_col != 1;
  }

  i64 extra_sums() const { return sum_size == 0 ? 0 : products * (pieces - 1) * sum_size; }

  bool run(const Gemm& part, bool adds) const {
    Product<T> product(part, 1, 0, adds);
    product.panel_by_panel();
    product.symmetric = false; /* what is computed of one half is not mirrored here */
    Scratch<T> scratch;
    if (!scratch.reserve(product.scratch_size())) return false;
    for (i64 at = 0; at < product.row_blocks * product.column_blocks; ++at) product.block(at, scratch.data);
    return true;
  }

  static Gemm alone(const Gemm& g) {
    Gemm part = g;
    part.axes = 0;
    part.done = nullptr;
    return part;
  }

  void turn(i64 index, T* turned) const {
    for (i64 k = 0; k < count; ++k) {
      if (!is_turned(steps[k])) continue;
      const Gemm& g = *steps[k].gemm;
      pack_panel(Product<T>(g, products).b_of(index), g.b_row, g.b_col, g.k, g.n, half, turned);
      turned += half * g.k;
    }
  }

  bool block(i64 index, i64 number, bool is_first, T* rows, const T* turned, T* extra) const {
    const i64 row = number * rows_per_block, high = least(rows_per_block, any->m - row);
    for (i64 k = 0; k < count; ++k) {
      const RowStep& step = steps[k];
      T* const matrix = rows + step.matrix * half;
      if (step.kind == kRowKernel) {
        step.kernel(step.context, rows, row_step, index, row, high, 0, any->n);
        continue;
      }
      const Product<T> all(*step.gemm, products);
      Gemm part = alone(*step.gemm);
      part.b = all.b_of(index);
      bool adds = false;
      if (step.kind == kRowScores) {
        part.m = high;
        part.a = all.a_of(index) + row * part.a_row;
        if (is_turned(step)) part.b = turned, part.b_row = half, part.b_col = 1, turned += half * part.k;
        part.c = matrix;
        part.c_row = row_step;
      } else if (step.kind == kRowOut) {
        part.m = high;
        part.a = matrix;
        part.a_row = row_step;
        part.a_col = 1;
        if (step.matrix < 0) part.a = all.a_of(index) + row * step.gemm->a_row, part.a_row = step.gemm->a_row;
        part.c = all.c_of(index) + row * part.c_row;
      } else {
        part.k = high;
        part.a = matrix;
        part.a_row = 1;
        part.a_col = row_step;
        if (step.matrix < 0) part.a = all.a_of(index) + row * step.gemm->a_col, part.a_col = step.gemm->a_col;
        part.b = all.b_of(index) + row * part.b_row;
        part.c = all.c_of(index);
        if (extra) part.c = extra, part.c_row = part.n, extra += part.m * part.n;
        adds = !is_first;
      }
      if (!run(part, adds)) return false;
    }
    return true;
  }

  /* Pieces of products, each some blocks. */
  bool range(i64 lo, i64 hi) const {
    Scratch<T> rows, turned;
    if (!rows.reserve(rows_per_block * row_step) || !turned.reserve(turned_size)) return false;
    i64 copied = -1;
    for (i64 at = lo; at < hi; ++at) {
      const i64 index = at / pieces, piece = at % pieces;
      if (copied != index) turn(index, turned.data);
      copied = index;
      T* const extra = piece > 0 && sum_size > 0 ? sums + (index * (pieces - 1) + piece - 1) * sum_size : nullptr;
      const i64 first = piece * blocks_per_piece, end = least(blocks, first + blocks_per_piece);
      for (i64 number = first; number < end; ++number)
        if (!block(index, number, number == first, rows.data, turned.data, extra)) return false;
    }
    return true;
  }

  /* Adds what other pieces have summed, in order. */
  void join(i64 index) const {
    for (i64 piece = 1; piece < pieces; ++piece) {
      const T* from = sums + (index * (pieces - 1) + piece - 1) * sum_size;
      for (i64 k = 0; k < count; ++k) {
        if (steps[k].kind != kRowSum) continue;
        const Gemm& g = *steps[k].gemm;
        T* const c = Product<T>(g, products).c_of(index);
        for (i64 i = 0; i < g.m; ++i, from += g.n)
          for (i64 j = 0; j < g.n; ++j) c[i * g.c_row + j] += from[j];
      }
    }
  }

  /* Without rows the sums over them are zeros. */
  void clear() const {
    for (i64 k = 0; k < count; ++k) {
      if (steps[k].kind != kRowSum) continue;
      const Gemm& g = *steps[k].gemm;
      for (i64 index = 0; index < products; ++index)
        for (i64 i = 0; i < g.m; ++i)
          for (i64 j = 0; j < g.n; ++j) Product<T>(g, products).c_of(index)[i * g.c_row + j] = 0;
    }
  }
};

template <class T>
void row_range(void* raw, i64 lo, i64 hi, int) {
  RowProgram<T>& program = *static_cast<RowProgram<T>*>(raw);
  if (!program.range(lo, hi)) __atomic_store_n(&program.failed, 1, __ATOMIC_RELAXED);
}

template <class T>
int run_rows(const RowStep* steps, i64 count, i64 matrices) {
  RowProgram<T> program(steps, count, matrices);
  if (program.products == 0) return 0;
  if (program.blocks == 0) {
    program.clear();
    return 0;
  }
  Scratch<T> sums;
  if (!sums.reserve(program.extra_sums())) return 1;
  program.sums = sums.data;
  const i64 work = program.blocks_per_piece * program.rows_per_block * program.any->n * (program.any->k + 1);
  parallel_for(row_range<T>, &program, program.products * program.pieces, ceil_div(kPiece, work));
  if (program.failed) return 1;
  for (i64 index = 0; index < program.products && program.extra_sums() > 0; ++index) program.join(index);
  return 0;
}
