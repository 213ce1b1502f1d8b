/* The walk of a product over blocks of its rows and of its columns, whatever its operands are made of: what product.h
 * and brain.h share. Included once per instruction set. */

/* Multiplications that one piece of parallel work should have, pieces that a thread should have, and rows that are
 * worth packing B again for, or making it again. */
constexpr i64 kPiece = 300000;
constexpr i64 kPiecesPerThread = 4;
constexpr i64 kRowsPerPiece = 64, kRowsPerFilled = 256;
/* Bytes of B that a block packs, and of C that it holds where C has no memory: parts of the second-level cache, where
 * the next block's B, asked for ahead, and rows of A find room as well. */
constexpr i64 kBlockBytes = 256 << 10;
/* Terms summed in registers before C is written; more are summed in equal blocks. */
constexpr i64 kTerms = 1024;
/* Fewer rows than this times columns that are contiguous along k: dot products, nothing is copied. */
constexpr i64 kDotRowsMost = 20;
/* Columns of B that are made at once for dot products (whole steps of these), and terms up to which. */
constexpr i64 kMadeColumns = 8, kDotTermsMost = 8192;
/* Rows of the result for which packed copies of B are kept, and bytes of B from which on. */
constexpr i64 kKeptFromRows = 8, kKeptToRows = 2048, kKeptFilledFromRows = 2;
constexpr i64 kKeptBytes = 64 << 10;
/* Elements between rows of A that are made, more than they are long, lest they fall on each other in the cache. */
constexpr i64 kFilledGap = 16;

/* Whether all products have one matrix B, and whether a matrix's elements lie in memory close to each other. */
bool is_one_matrix(const Gemm& g) {
  for (int axis = 0; axis < g.axes; ++axis)
    if (g.batch[axis] > 1 && g.b_batch[axis] != 0) return false;
  return g.b_row >= 1 && g.b_col >= 1;
}
i64 extent_of(i64 rows, i64 row, i64 cols, i64 col) { return (rows - 1) * row + (cols - 1) * col + 1; }
bool lies_close(i64 rows, i64 row, i64 cols, i64 col) {
  return row >= 1 && col >= 1 && extent_of(rows, row, cols, col) <= 2 * rows * cols;
}

/* `Types` names an element of A (`Left`) and an `Element` of B, what is `Packed` of B, a `Sum`, and the multiplications of a piece of
 * work. `Self` says what there is of scratch memory (b_scratch, a_scratch), what makes dot products (find_dots_of),
 * and does the terms of a block (terms_of_block). Terms are counted as they are multiplied: one by one, or in pairs. */
template <class Self, class Types>
struct Blocking {
  using Left = typename Types::Left;
  using Element = typename Types::Element;
  using Packed = typename Types::Packed;
  using Sum = typename Types::Sum;
  static constexpr i64 kWidth = kVectorBytes / sizeof(Sum), kWork = Types::kWork;

  const Gemm& g;
  i64 length; /* terms */
  /* A tile has `tile_rows` rows and `tile_vectors` vectors, `panel` columns. */
  i64 tile_rows, tile_vectors, panel;
  i64 panels, terms, rows_per_block, row_blocks, panels_per_block, column_blocks;
  bool by_dots;
  const Packed* packed = nullptr; /* all panels of B, one after the other, where they are kept from call to call */

  Blocking(const Gemm& gemm, i64 count) : g(gemm), length(count) {}

  /* Rows are shared out evenly among tiles that fill the registers. */
  void choose_tiles(i64 vectors) {
    tile_vectors = vectors;
    tile_rows = ceil_div(g.m, ceil_div(g.m, most_rows(vectors)));
    panel = vectors * kWidth;
    panels = ceil_div(g.n, panel);
  }

  /* `fitting`: panels that a block should have at most. */
  void cut(i64 products, i64 fitting) {
    const i64 groups = ceil_div(g.m, tile_rows);
    column_blocks = ceil_div(panels, least(panels, g.block_panels > 0 ? g.block_panels : fitting));
    panels_per_block = ceil_div(panels, column_blocks);
    const i64 fit = kBlockBytes / static_cast<i64>(sizeof(Sum)) / (panels_per_block * panel);
    i64 held = g.c || length <= terms ? g.m : most(fit, tile_rows);
    if (g.block_rows > 0) held = least(held, most(g.block_rows, tile_rows));
    row_blocks = held >= g.m ? 1 : ceil_div(groups * tile_rows, held);
    share_out(products, groups);
    rows_per_block = ceil_div(groups, row_blocks) * tile_rows;
    row_blocks = ceil_div(g.m, rows_per_block);
    column_blocks = ceil_div(panels, panels_per_block);
  }

  /* More blocks where there are too few for all threads: first of rows, then of columns. The bits are the same. */
  void share_out(i64 products, i64 groups) {
    const i64 wanted = least(threads_here() > 1 ? threads_here() * kPiecesPerThread : 1,
                             ceil_div(products * g.m * g.n * (g.k + 1), kWork));
    const i64 least_rows = g.fill_b ? kRowsPerFilled : kRowsPerPiece;
    const i64 rows = least(ceil_div(wanted, products * column_blocks), g.m / least_rows);
    if (rows > row_blocks) row_blocks = least(rows, groups);
    const i64 columns = least(ceil_div(wanted, products * row_blocks), panels);
    if (columns > column_blocks) panels_per_block = ceil_div(panels, columns);
  }

  /* -- places ----------------------------------------------------------------------------- */
  i64 columns(i64 number) const { return least(panel, g.n - number * panel); }
  i64 vectors(i64 number) const { return ceil_div(columns(number), kWidth); }
  i64 width(i64 number) const { return vectors(number) * kWidth; }

  i64 offset(i64 index, const i64* strides) const { return batch_offset(g, index, strides); }

  const Left* a_of(i64 index) const { return static_cast<const Left*>(g.a) + offset(index, g.a_batch); }
  const Element* b_of(i64 index) const { return static_cast<const Element*>(g.b) + offset(index, g.b_batch); }
  Sum* c_of(i64 index) const { return static_cast<Sum*>(g.c) + offset(index, g.c_batch); }

  /* -- copies of B that are kept ------------------------------------------------------------ */
  /* Whether one of at least so many bytes of B may be: it is one matrix, whose elements lie close to each other. */
  bool may_keep(i64 least_bytes) const {
    if (!g.kept || by_dots || !is_one_matrix(g)) return false;
    const i64 bytes = g.k * g.n * static_cast<i64>(sizeof(Element));
    if (g.m > kKeptToRows || bytes < kKeptBytes) return false;
    if (g.fill_b) return g.m >= kKeptFilledFromRows;
    return g.m >= kKeptFromRows && lies_close(g.k, g.b_row, g.n, g.b_col) && bytes >= least_bytes;
  }

  i64 packed_size() const { return length * ((panels - 1) * panel + width(panels - 1)); }

  /* -- a block ------------------------------------------------------------------------------ */
  /* Rows and panels of one product, and where they go. */
  struct Block {
    i64 index, row, rows, panel, end;
    Packed* b;
    Element* a;
    Sum *edge, *c;
    i64 c_row;
    bool hold; /* C is memory for one group of rows, used again for the next */
  };

  /* Sums of scratch: what the product says, a tile at the edge of C, and C where it has no memory. */
  i64 edge_scratch() const { return by_dots ? 0 : tile_rows * panel; }
  i64 c_scratch() const {
    if (g.c) return 0;
    return (by_dots ? kDotRows : length <= terms ? tile_rows : rows_per_block) * panels_per_block * panel;
  }
  i64 operand_scratch() const { return self().b_scratch() + self().a_scratch(); }
  i64 scratch_size() const { return operand_scratch() + edge_scratch() + c_scratch(); }

  void block(i64 number, Sum* scratch) const {
    Block at;
    at.index = number;
    at.row = at.panel = 0;
    if (row_blocks > 1) at.row = at.index % row_blocks * rows_per_block, at.index /= row_blocks;
    if (column_blocks > 1) at.panel = at.index % column_blocks * panels_per_block, at.index /= column_blocks;
    at.rows = least(rows_per_block, g.m - at.row);
    at.end = least(panels, at.panel + panels_per_block);
    at.b = reinterpret_cast<Packed*>(scratch);
    at.a = reinterpret_cast<Element*>(scratch + self().b_scratch());
    at.edge = scratch + operand_scratch();
    at.c = g.c ? c_of(at.index) + at.row * g.c_row + at.panel * panel : at.edge + edge_scratch();
    at.c_row = g.c ? g.c_row : panels_per_block * panel;
    at.hold = !g.c && (by_dots || length <= terms);
    if (by_dots) return dots_of_block(at);
    i64 p = 0;
    do {
      self().terms_of_block(at, p, least(terms, length - p));
      p += terms;
    } while (p < length); /* once without terms: C is zero */
  }

  Sum* c_at(const Block& at, i64 row) const { return at.hold ? at.c : at.c + row * at.c_row; }

  void finished(const Block& at, i64 i, i64 rows) const {
    const i64 from = at.panel * panel, end = least(g.n, at.end * panel);
    if (g.done) g.done(g.context, c_at(at, i), at.c_row, at.index, at.row + i, rows, from, end - from);
  }

  /* Columns of B made for dot products, and elements from one to the next. */
  i64 dot_gap() const { return ceil_div(g.k, kFilledGap) * kFilledGap + kFilledGap; }
  i64 dot_scratch() const { return g.fill_b ? kMadeColumns * dot_gap() : 0; }
  i64 fill_columns(const Block& at, i64 from, i64 end) const {
    const i64 count = least(kMadeColumns, end - from);
    g.fill_b->fill(g.fill_b->context, at.a, dot_gap(), at.index, from, count, 0, g.k);
    return from + count;
  }

  void dots_of_block(const Block& at) const {
    const i64 from = at.panel * panel, end = least(g.n, at.end * panel);
    const Left* const a = a_of(at.index) + at.row * g.a_row;
    const Element* const b = b_of(at.index);
    for (i64 i = 0; i < at.rows; i += kDotRows) {
      const i64 high = least(kDotRows, at.rows - i);
      Sum* const to = c_at(at, i);
      i64 made = from; /* columns of B where they are made */
      for (i64 j = from; j < end;) {
        const i64 cols = dot_columns(high, end - j);
        if (g.fill_b && j == made) made = fill_columns(at, j, end);
        const Element* const col = g.fill_b ? at.a + (j - from) % kMadeColumns * dot_gap() : b + j * g.b_col;
        const auto run = Self::find_dots_of(high, cols);
        run(g.k, a + i * g.a_row, g.a_row, col, g.fill_b ? dot_gap() : g.b_col, to + j - from, at.c_row);
        j += cols;
      }
      finished(at, i, high);
    }
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/* -- the product as parallel work ------------------------------------------------------------- */
template <class Kind>
struct Packing {
  const Kind* product;
  typename Kind::Packed* to;
};

template <class Kind>
void packing_range(void* raw, i64 lo, i64 hi, int) {
  const Packing<Kind>& packing = *static_cast<const Packing<Kind>*>(raw);
  packing.product->pack_panels(packing.to, lo, hi);
}

/* All panels of B, for a copy that is kept. */
template <class Kind>
void pack_all(const void* raw, void* to) {
  const Kind& product = *static_cast<const Kind*>(raw);
  Packing<Kind> packing = {&product, static_cast<typename Kind::Packed*>(to)};
  parallel_for(packing_range<Kind>, &packing, product.panels, ceil_div(kPiece, product.g.k * product.panel));
}

template <class Kind>
KeptUse take_packed(const Kind& product) {
  if (!product.keeps()) return {nullptr, nullptr};
  const Gemm& g = product.g;
  const size_t bytes = static_cast<size_t>(product.packed_size()) * sizeof(typename Kind::Packed);
  if (!g.fill_b) {
    using Element = typename Kind::Element;
    constexpr i64 kIsUnsigned = static_cast<Element>(-1) > 0; /* other numbers of the same bytes */
    const KeptKey key = {g.b, g.k, g.n, g.b_row, g.b_col, sizeof(Element), product.panel, kIsUnsigned};
    return kept_take(key, {0, nullptr, nullptr}, bytes, pack_all<Kind>, &product);
  }
  const Filling& filling = *g.fill_b;
  const KeptKey key = {g.b, 1, filling.bytes, 0, 1, 1, product.panel, filling.tag};
  return kept_take(key, {filling.sides, filling.side, filling.side_bytes}, bytes, pack_all<Kind>, &product);
}

/* 1 if there was no memory. `Kind::kWork`: multiplications of a piece of work. */
template <class Kind>
int run_product(Kind& product, i64 products) {
  const Gemm& g = product.g;
  const KeptUse kept = take_packed(product);
  product.packed = static_cast<const typename Kind::Packed*>(kept.data);
  const i64 blocks = product.row_blocks * product.column_blocks;
  const i64 work = least(g.m, product.rows_per_block) * product.panels_per_block * product.panel * (g.k + 1);
  const int failed = run_blocks<typename Kind::Sum>(product, products * blocks, ceil_div(Kind::kWork, work));
  kept_give_back(kept);
  return failed;
}
