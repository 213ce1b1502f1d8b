/* The loops around the register tiles. Included once per instruction set. */

/* Multiplications that one piece of parallel work should have. */
constexpr i64 kPiece = 300000;
/* From this many rows on, B is copied into panels first. Below, it is read where it lies: all columns of a block
 * for some terms, then for the next, since memory is read fastest along its rows. */
constexpr i64 kPackFromRows = 96;
constexpr i64 kTermsInPlace = 128;
constexpr i64 kPanelsInPlace = 8;
/* Fewer rows than this times columns that are contiguous along k: dot products, nothing is copied. */
constexpr i64 kDotRowsMost = 32;
/* Terms summed in registers before C is written; more are summed in equal blocks. */
constexpr i64 kTerms = 512;
/* Bytes of A that a block should take of the second-level cache. */
constexpr i64 kCachedBytes = 512 << 10;
/* Elements of B that one piece of parallel packing should have, and bytes of packed matrices held at once. */
constexpr i64 kPackPiece = 16384;
constexpr i64 kPackedBytes = 64 << 20;

i64 least(i64 a, i64 b) { return a < b ? a : b; }
i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

/* Memory for copies: in the object itself where it is small, else a block of the cache. */
template <class T, i64 kSmall>
struct Memory {
  T small[kSmall] __attribute__((aligned(64)));
  T* data = small;

  /* False where the system has no memory left. */
  bool reserve(i64 elements) {
    if (elements <= kSmall) return true;
    data = static_cast<T*>(block_allocate(static_cast<size_t>(elements) * sizeof(T)));
    return data != nullptr;
  }
  ~Memory() {
    if (data && data != small) block_free(data);
  }
};

template <class T>
using Scratch = Memory<T, 1024>;
template <class T>
using Packed = Memory<T, 8192>;

template <class T>
struct Product {
  static constexpr i64 kPanel = kTileVectors * Lanes<T>::kWidth;

  const Gemm& g;
  i64 panels, terms, rows_per_block, row_blocks, panels_per_block, column_blocks;
  bool by_dots, pack_a, pack_b, in_place;
  /* Copies of the operands of products [first, ...): B by panels, A by groups of kTileRows rows, both for all k. */
  T* packed_a = nullptr;
  T* packed_b = nullptr;
  i64 first = 0;

  explicit Product(const Gemm& gemm) : g(gemm) {
    panels = ceil_div(g.n, kPanel);
    terms = g.k > 0 ? ceil_div(g.k, ceil_div(g.k, kTerms)) : 1;
    by_dots = g.m < kDotRowsMost && g.a_col == 1 && g.b_row == 1 && g.b_col != 1;
    pack_b = !by_dots && (g.m >= (g.b_col == 1 ? kPackFromRows : kDotRowsMost) || (g.b_col != 1 && g.n > 1));
    in_place = !by_dots && !pack_b;
    if (in_place) terms = least(terms, kTermsInPlace);
    pack_a = g.a_col != 1 && g.m > 1;
    /* a block of A stays in the second-level cache; the rows are shared out evenly */
    const i64 fitting = kCachedBytes / static_cast<i64>(sizeof(T)) / terms / kTileRows * kTileRows;
    const i64 wanted = fitting < 4 * kTileRows ? 4 * kTileRows : fitting;
    row_blocks = ceil_div(g.m, wanted);
    rows_per_block = ceil_div(ceil_div(g.m, row_blocks), kTileRows) * kTileRows;
    row_blocks = ceil_div(g.m, rows_per_block);
    const i64 per_panel = least(g.m, rows_per_block) * kPanel * (in_place ? g.k : terms) + 1;
    const i64 fewest = in_place ? kPanelsInPlace : 1;
    panels_per_block = ceil_div(kPiece, per_panel);
    panels_per_block = least(panels, panels_per_block < fewest ? fewest : panels_per_block);
    column_blocks = ceil_div(panels, panels_per_block);
  }

  i64 columns(i64 panel) const { return least(kPanel, g.n - panel * kPanel); }
  i64 vectors(i64 panel) const { return ceil_div(columns(panel), Lanes<T>::kWidth); }
  i64 a_elements() const { return pack_a ? g.m * g.k : 0; }
  i64 b_elements() const {
    return pack_b ? ((panels - 1) * kPanel + vectors(panels - 1) * Lanes<T>::kWidth) * g.k : 0;
  }

  i64 offset(i64 index, const i64* strides) const {
    i64 total = 0;
    for (int axis = g.axes - 1; axis >= 0; --axis) {
      total += index % g.batch[axis] * strides[axis];
      index /= g.batch[axis];
    }
    return total;
  }

  const T* a_of(i64 index) const { return static_cast<const T*>(g.a) + offset(index, g.a_batch); }
  const T* b_of(i64 index) const { return static_cast<const T*>(g.b) + offset(index, g.b_batch); }
  T* c_of(i64 index) const { return static_cast<T*>(g.c) + offset(index, g.c_batch); }

  /* Pieces of packing in one product: panels of B, then groups of rows of A. */
  i64 pack_pieces() const { return (pack_b ? panels : 0) + (pack_a ? ceil_div(g.m, kTileRows) : 0); }

  void pack(i64 number) const {
    const i64 index = number / pack_pieces(), piece = number % pack_pieces(), nth = index - first;
    if (pack_b && piece < panels) {
      const T* const b = b_of(index) + piece * kPanel * g.b_col;
      T* const to = packed_b + nth * b_elements() + piece * kPanel * g.k;
      pack_panel(b, g.b_row, g.b_col, g.k, columns(piece), vectors(piece) * Lanes<T>::kWidth, to);
      return;
    }
    const i64 row = (pack_b ? piece - panels : piece) * kTileRows;
    const T* const a = a_of(index) + row * g.a_row;
    pack_rows(a, g.a_row, g.a_col, least(kTileRows, g.m - row), g.k, packed_a + nth * a_elements() + row * g.k);
  }

  /* Elements of scratch: the last panel of B, a block of C, a tile at its edge. */
  i64 b_scratch() const { return pack_b || by_dots ? 0 : terms * kPanel; }
  i64 c_scratch() const { return g.c ? 0 : rows_per_block * panels_per_block * kPanel; }
  i64 scratch_size() const { return b_scratch() + c_scratch() + kTileRows * kPanel; }

  void block(i64 number, T* scratch) const {
    Block at;
    at.index = number / (row_blocks * column_blocks);
    at.row = number % row_blocks * rows_per_block;
    at.rows = least(rows_per_block, g.m - at.row);
    at.panel = number / row_blocks % column_blocks * panels_per_block;
    at.end = least(panels, at.panel + panels_per_block);
    at.c = g.c ? c_of(at.index) + at.row * g.c_row + at.panel * kPanel : scratch + b_scratch();
    at.c_row = g.c ? g.c_row : panels_per_block * kPanel;
    at.scratch = scratch;
    if (by_dots) {
      dots_of_block(at);
      return;
    }
    i64 p = 0;
    do {
      terms_of_block(at, p, least(terms, g.k - p));
      p += terms;
    } while (p < g.k); /* once without terms: C is zero */
  }

  /* Rows and panels of one product, and where they go. */
  struct Block {
    i64 index, row, rows, panel, end;
    T* c;
    i64 c_row;
    T* scratch;
  };

  void finished(const Block& at, i64 i, i64 rows, i64 col, i64 cols, const T* tile) const {
    if (g.done) g.done(g.context, tile, at.c_row, at.index, at.row + i, rows, col, cols);
  }

  void dots_of_block(const Block& at) const {
    const i64 from = at.panel * kPanel, end = least(g.n, at.end * kPanel);
    const T* const a = a_of(at.index) + at.row * g.a_row;
    for (i64 i = 0; i < at.rows; i += kDotRows) {
      const i64 high = least(kDotRows, at.rows - i);
      for (i64 j = from; j < end;) {
        const bool single = end - j < kDotCols;
        const T* const b = b_of(at.index) + j * g.b_col;
        find_dots<T>(high, single)(g.k, a + i * g.a_row, g.a_row, b, g.b_col, at.c + i * at.c_row + j - from, at.c_row);
        j += single ? 1 : kDotCols;
      }
      finished(at, i, high, from, end - from, at.c + i * at.c_row);
    }
  }

  void terms_of_block(const Block& at, i64 p, i64 count) const {
    for (i64 j = at.panel; j < at.end; ++j) {
      const i64 width = vectors(j) * Lanes<T>::kWidth;
      const T* b = b_of(at.index) + p * g.b_row + j * kPanel * g.b_col;
      i64 b_row = g.b_row;
      if (pack_b) {
        b = packed_b + (at.index - first) * b_elements() + j * kPanel * g.k + p * width;
        b_row = width;
      } else if (columns(j) < width) {
        pack_panel(b, g.b_row, g.b_col, count, columns(j), width, at.scratch);
        b = at.scratch;
        b_row = width;
      }
      panel_of_block(at, j, p, count, b, b_row);
    }
  }

  void panel_of_block(const Block& at, i64 j, i64 p, i64 count, const T* b, i64 b_row) const {
    const i64 cols = columns(j);
    const bool whole = !g.c || cols % Lanes<T>::kWidth == 0;
    const T* const a = pack_a ? packed_a + (at.index - first) * a_elements() : a_of(at.index) + p * g.a_col;
    for (i64 i = 0; i < at.rows; i += kTileRows) {
      const i64 high = least(kTileRows, at.rows - i);
      const Tile<T> run = find_tile<T>(high, vectors(j));
      const T* const left = pack_a ? a + (at.row + i) * g.k + p * high : a + (at.row + i) * g.a_row;
      const i64 a_row = pack_a ? 1 : g.a_row, a_col = pack_a ? high : g.a_col;
      T* const to = at.c + i * at.c_row + (j - at.panel) * kPanel;
      if (whole) {
        run(count, left, a_row, a_col, b, b_row, to, at.c_row, p > 0);
      } else {
        T* const edge = at.scratch + b_scratch() + c_scratch();
        run(count, left, a_row, a_col, b, b_row, edge, kPanel, false);
        copy_edge(edge, high, cols, to, at.c_row, p > 0);
      }
      if (p + count == g.k) finished(at, i, high, j * kPanel, cols, to);
    }
  }

  /* A tile that reaches over the last column was computed beside C. */
  static void copy_edge(const T* edge, i64 rows, i64 cols, T* c, i64 c_row, bool add) {
    for (i64 i = 0; i < rows; ++i)
      if (add)
        for (i64 j = 0; j < cols; ++j) c[i * c_row + j] += edge[i * kPanel + j];
      else
        copy_row(edge + i * kPanel, cols, c + i * c_row);
  }
};

template <class T>
struct Range {
  const Product<T>* product;
  int failed;
};

template <class T>
void pack_range(void* raw, i64 lo, i64 hi, int) {
  const Product<T>& product = *static_cast<Range<T>*>(raw)->product;
  for (i64 at = lo; at < hi; ++at) product.pack(product.first * product.pack_pieces() + at);
}

template <class T>
void block_range(void* raw, i64 lo, i64 hi, int) {
  Range<T>& range = *static_cast<Range<T>*>(raw);
  const Product<T>& product = *range.product;
  const i64 before = product.first * product.row_blocks * product.column_blocks;
  Scratch<T> scratch;
  if (!scratch.reserve(product.scratch_size())) {
    __atomic_store_n(&range.failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (i64 at = lo; at < hi; ++at) product.block(before + at, scratch.data);
}

/* Products [product.first, product.first + count). */
template <class T>
int run_products(Product<T>& product, i64 count) {
  const Gemm& g = product.g;
  Range<T> range = {&product, 0};
  Packed<T> a, b;
  if (!a.reserve(product.a_elements() * count) || !b.reserve(product.b_elements() * count)) return 1;
  product.packed_a = a.data;
  product.packed_b = b.data;
  const i64 pieces = product.pack_pieces();
  if (pieces > 0) {
    const i64 each = (product.a_elements() + product.b_elements()) / pieces;
    parallel_for(pack_range<T>, &range, count * pieces, ceil_div(kPackPiece, each + 1));
  }
  const i64 blocks = product.row_blocks * product.column_blocks;
  const i64 work = least(g.m, product.rows_per_block) * product.panels_per_block * product.kPanel * (g.k + 1);
  parallel_for(block_range<T>, &range, count * blocks, ceil_div(kPiece, work));
  return range.failed;
}

template <class T>
int multiply(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  Product<T> product(*gemm);
  const i64 bytes = (product.a_elements() + product.b_elements()) * static_cast<i64>(sizeof(T));
  const i64 fitting = bytes > 0 ? kPackedBytes / bytes : products;
  const i64 step = fitting < 1 ? 1 : fitting;
  for (i64 first = 0; first < products; first += step) {
    product.first = first;
    if (run_products(product, least(step, products - first))) return 1;
  }
  return 0;
}
