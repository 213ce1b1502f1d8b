/* Two products with a function of whole rows between them. Included once per instruction set.
 *
 * A block of rows of the first product, what is made of them and the rows of the second product stay in the
 * second-level cache: this is attention without the matrix of scores in memory. Columns of the scores that a causal
 * mask hides from all rows of a block are left out, unless a zero times what they stand for were no zero. A softmax is
 * made in place, and its rows are divided by their sums after the second product.
 */

/* Rows of a block, and bytes that they and what is made of them should take at most. */
constexpr i64 kChainRows = 96;
constexpr i64 kChainBytes = 1 << 20;
constexpr i64 kChainRowsStep = 12;
/* Rows that go through what is before a softmax, and through it, while they are in the first-level cache. */
constexpr i64 kSoftRows = 6;
/* Rows from which on a B whose columns are contiguous is copied. */
constexpr i64 kTurnedFromRows = 5;

template <class T>
struct Chain {
  const Gemm& first;
  const Gemm& second;
  i64 products, rows_per_block, row_blocks;
  i64 half;         /* elements between a row and what is made of it */
  i64 row_step;     /* elements from row to row */
  /* Elements of a row of the copy of each product's B, 0 for no copy. How a B whose columns are contiguous is read
   * where it lies depends on the rows of a block, and so would the bits. */
  i64 first_width, second_width;
  int failed = 0;

  Chain(const Gemm& one, const Gemm& two, i64 count) : first(one), second(two), products(count) {
    constexpr i64 kWidth = Lanes<T>::kWidth;
    /* an odd number of vectors, lest rows fall on each other in the cache */
    half = (ceil_div(first.n, kWidth) | 1) * kWidth;
    row_step = first.softmax ? half : 2 * half;
    first_width = is_turned(first) ? half : 0;
    second_width = is_turned(second) ? (ceil_div(second.n, kWidth) | 1) * kWidth : 0;
    const i64 fitting = kChainBytes / static_cast<i64>(sizeof(T)) / row_step;
    const i64 shared = ceil_div(products * first.m, threads_here() > 1 ? threads_here() * kPiecesPerThread : 1);
    const i64 rows = least(kChainRows, least(fitting, shared)) / kChainRowsStep * kChainRowsStep;
    rows_per_block = least(first.m, rows < kChainRowsStep ? kChainRowsStep : rows);
    row_blocks = ceil_div(first.m, rows_per_block);
  }

  i64 rows_size() const { return rows_per_block * row_step; }
  i64 turned_size() const { return first_width * first.k + second_width * second.k; }

  static bool is_turned(const Gemm& g) { return g.b_row == 1 && g.b_col != 1 && g.m >= kTurnedFromRows; }

  void turn(i64 index, T* turned) const {
    turn_one(first, index, first_width, turned);
    turn_one(second, index, second_width, turned + first_width * first.k);
  }

  void turn_one(const Gemm& g, i64 index, i64 width, T* to) const {
    if (width) pack_panel(Product<T>(g, products).b_of(index), g.b_row, g.b_col, g.k, g.n, width, to);
  }

  /* The B of a product, or the copy of it. */
  static void read_b(Gemm& part, const T* lying, i64 width, const T* turned) {
    part.b = width ? turned : lying;
    if (width) part.b_row = width, part.b_col = 1;
  }

  /* One product, by this thread alone. */
  bool run(const Gemm& part, i64 all_terms) const {
    Product<T> product(part, 1, all_terms);
    product.panel_by_panel();
    product.symmetric = false; /* what is computed of one half is not mirrored here */
    Scratch<T> scratch;
    if (!scratch.reserve(product.scratch_size())) return false;
    for (i64 at = 0; at < product.row_blocks * product.column_blocks; ++at) product.block(at, scratch.data);
    return true;
  }

  /* The row of the second product's B from which on all elements are finite. */
  i64 finite_from(const T* b) const {
    i64 p = second.k;
    while (p > 0 && all_finite(b + (p - 1) * second.b_row, second.b_col, second.n)) --p;
    return p;
  }

  /* Columns of the scores that some row of a block may see; `finite`: those behind them may be left out. */
  i64 columns_of(i64 row, i64 rows, i64 finite) const {
    if (!first.causal) return first.n;
    constexpr i64 kStep = 64 / static_cast<i64>(sizeof(T)); /* whole cache lines */
    const i64 seen = most(most(row + rows - 1 + first.seen, finite), 1);
    return least(first.n, ceil_div(seen, kStep) * kStep);
  }

  bool block(i64 index, i64 row, T* rows, const T* turned, i64 finite) const {
    const Product<T> one(first, products), two(second, products);
    Gemm part = first;
    part.axes = 0;
    part.m = least(rows_per_block, first.m - row);
    part.a = one.a_of(index) + row * first.a_row;
    read_b(part, one.b_of(index), first_width, turned);
    part.n = columns_of(row, part.m, finite);
    part.c = rows;
    part.c_row = row_step;
    part.done = nullptr;
    if (!run(part, part.k)) return false;
    T after[kChainRows];
    if (first.softmax)
      soften_block(index, row, part.m, part.n, rows, after);
    else
      first.done(first.context, rows, row_step, index, row, part.m, 0, part.n);
    Gemm last = second;
    last.axes = 0;
    last.m = part.m;
    last.k = part.n;
    last.a = first.softmax ? rows : rows + half;
    last.a_row = row_step;
    last.a_col = 1;
    read_b(last, two.b_of(index), second_width, turned + first_width * first.k);
    last.c = two.c_of(index) + row * second.c_row;
    if (!run(last, second.k)) return false;
    return !first.softmax || divide(last, rows, after);
  }

  /* Rows of the first product as weights, and what the rows of the second are to be multiplied by. */
  void soften_block(i64 index, i64 row, i64 count, i64 columns, T* rows, T* after) const {
    const bool empty_is_zero = first.softmax == 2;
    for (i64 i = 0; i < count; i += kSoftRows) {
      const i64 high = least(kSoftRows, count - i);
      T* const now = rows + i * row_step;
      if (first.done) first.done(first.context, now, row_step, index, row + i, high, 0, columns);
      for (i64 k = 0; k < high; ++k) {
        const i64 seen = first.causal ? least(columns, most(0, row + i + k + first.seen)) : columns;
        after[i + k] = soften(now + k * row_step, columns, seen, static_cast<T>(first.factor), empty_is_zero);
      }
    }
  }

  /* Divides the rows of the second product by the sums of their weights; where a sum of products is too large for
   * the type, the weights of that row are divided instead. */
  bool divide(const Gemm& last, T* rows, const T* after) const {
    T* const c = static_cast<T*>(last.c);
    for (i64 i = 0; i < last.m; ++i) {
      T* const row = c + i * last.c_row;
      if (all_finite(row, 1, last.n)) {
        scale_row(row, last.n, after[i]);
        continue;
      }
      T* const weights = rows + i * row_step;
      scale_row(weights, last.k, after[i]);
      Gemm single = last;
      single.m = 1;
      single.a = weights;
      single.c = row;
      if (!run(single, second.k)) return false;
    }
    return true;
  }

  bool blocks(i64 lo, i64 hi) const {
    Scratch<T> rows, turned;
    if (!rows.reserve(rows_size()) || !turned.reserve(turned_size())) return false;
    const Product<T> two(second, products);
    i64 copied = -1, finite = 0;
    for (i64 at = lo; at < hi; ++at) {
      const i64 index = at / row_blocks;
      if (copied != index) turn(index, turned.data);
      if (first.causal && copied != index) finite = finite_from(two.b_of(index));
      copied = index;
      if (!block(index, at % row_blocks * rows_per_block, rows.data, turned.data, finite)) return false;
    }
    return true;
  }
};

template <class T>
void chain_range(void* raw, i64 lo, i64 hi, int) {
  Chain<T>& chain = *static_cast<Chain<T>*>(raw);
  if (!chain.blocks(lo, hi)) __atomic_store_n(&chain.failed, 1, __ATOMIC_RELAXED);
}

template <class T>
int multiply_chain(const Gemm* first, const Gemm* second) {
  i64 products = 1;
  for (int axis = 0; axis < first->axes; ++axis) products *= first->batch[axis];
  if (products == 0 || first->m == 0 || second->n == 0) return 0;
  Chain<T> chain(*first, *second, products);
  const i64 work = chain.rows_per_block * first->n * (first->k + second->n + 1);
  parallel_for(chain_range<T>, &chain, products * chain.row_blocks, ceil_div(kPiece, work));
  return chain.failed;
}
