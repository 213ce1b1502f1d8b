/* The loops around the register tiles of bfloat16 (brain_tile.h), in the manner of product.h: a block of B is packed into
 * the second-level cache, then the rows of A go over it. Sums go on from what is in C where terms are left, so that
 * the bits depend on the sizes and strides alone. Included by avx512_bf16.cpp. */

/* Pairs of terms for which B is packed at once. */
constexpr i64 kBrainPairs = 512;
/* Terms of a B that is made, as they are made before they are woven. */
constexpr i64 kBrainFilledTerms = 64;

struct BrainProduct {
  const Gemm& g;
  i64 all, tile_rows, tile_vectors, panel, panels; /* `all`: pairs */
  i64 pairs, rows_per_block, row_blocks, panels_per_block, column_blocks;
  bool by_dots, pack_a;
  BrainTile whole;
  const Pair* packed = nullptr;

  BrainProduct(const Gemm& gemm, i64 products) : g(gemm), all(pairs_of(gemm.k)) {
    const i64 wide = ceil_div(g.n, kPairLanes);
    tile_vectors = ceil_div(wide, ceil_div(wide, kTileVectors));
    tile_rows = ceil_div(g.m, ceil_div(g.m, most_rows(tile_vectors)));
    panel = tile_vectors * kPairLanes;
    panels = ceil_div(g.n, panel);
    whole = find_brain_tile(tile_rows, tile_vectors);
    by_dots = !g.fill_a && !g.fill_b && g.m < kDotRowsMost && (g.a_col == 1 || g.k == 1) && g.b_row == 1 && g.b_col != 1;
    pack_a = !g.fill_a && (g.a_col != 1 || g.k % 2 != 0);
    choose_blocks(products);
  }

  void choose_blocks(i64 products) {
    const i64 groups = ceil_div(g.m, tile_rows);
    pairs = all > 0 ? ceil_div(all, ceil_div(all, kBrainPairs)) : 1;
    panels_per_block = least(panels, most(1, kBlockBytes / 4 / pairs / panel));
    column_blocks = ceil_div(panels, panels_per_block);
    panels_per_block = ceil_div(panels, column_blocks);
    const i64 held = g.c || all <= pairs ? g.m : most(tile_rows, kBlockBytes / 4 / (panels_per_block * panel));
    row_blocks = held >= g.m ? 1 : ceil_div(groups * tile_rows, held);
    share_out(products, groups);
    rows_per_block = ceil_div(groups, row_blocks) * tile_rows;
    row_blocks = ceil_div(g.m, rows_per_block);
    column_blocks = ceil_div(panels, panels_per_block);
  }

  /* As in product.h. */
  void share_out(i64 products, i64 groups) {
    const i64 wanted = least(num_threads() > 1 ? num_threads() * kPiecesPerThread : 1,
                             ceil_div(products * g.m * g.n * (g.k + 1), 2 * kPiece));
    const i64 rows = least(ceil_div(wanted, products * column_blocks), g.m / (g.fill_b ? kRowsPerFilled : kRowsPerPiece));
    if (rows > row_blocks) row_blocks = least(rows, groups);
    const i64 columns = least(ceil_div(wanted, products * row_blocks), panels);
    if (columns > column_blocks) panels_per_block = ceil_div(panels, columns);
  }

  i64 offset(i64 index, const i64* strides) const {
    i64 total = 0;
    for (int axis = g.axes - 1; axis >= 0; --axis) {
      total += index % g.batch[axis] * strides[axis];
      index /= g.batch[axis];
    }
    return total;
  }

  const Brain* a_of(i64 index) const { return static_cast<const Brain*>(g.a) + offset(index, g.a_batch); }
  const Brain* b_of(i64 index) const { return static_cast<const Brain*>(g.b) + offset(index, g.b_batch); }
  Sum* c_of(i64 index) const { return static_cast<Sum*>(g.c) + offset(index, g.c_batch); }
  i64 columns(i64 number) const { return least(panel, g.n - number * panel); }
  i64 width(i64 number) const { return ceil_div(columns(number), kPairLanes) * kPairLanes; }

  /* -- packing ---------------------------------------------------------------------------- */
  i64 packed_size() const { return all * ((panels - 1) * panel + width(panels - 1)); }

  void pack_panels(Pair* to, i64 from, i64 end) const {
    for (i64 j = from; j < end; ++j) pack_panel(0, j, 0, g.k, to + j * all * panel);
  }

  /* `count` rows of a panel from row p on. */
  void pack_panel(i64 index, i64 j, i64 p, i64 count, Pair* to) const {
    if (g.fill_b) return fill_panel(index, j, p, count, to);
    const Brain* const from = b_of(index) + p * g.b_row + j * panel * g.b_col;
    pack_pairs(from, g.b_row, g.b_col, count, columns(j), width(j), to);
  }

  void fill_panel(i64 index, i64 j, i64 p, i64 count, Pair* to) const {
    const Filling& filling = *g.fill_b;
    const bool turned = g.b_row == 1 && g.b_col != 1;
    const i64 from = j * panel, cols = columns(j);
    Brain made[kBrainFilledTerms * kTileVectors * kPairLanes + kTermLanes] __attribute__((aligned(64)));
    for (i64 q = 0; q < count; q += kBrainFilledTerms, to += kBrainFilledTerms / 2 * width(j)) {
      const i64 now = least(kBrainFilledTerms, count - q);
      if (turned)
        filling.fill(filling.context, made, kBrainFilledTerms, index, from, cols, p + q, now);
      else
        filling.fill(filling.context, made, panel, index, p + q, now, from, cols);
      pack_pairs(made, turned ? 1 : panel, turned ? kBrainFilledTerms : 1, now, cols, width(j), to);
    }
  }

  bool keeps() const {
    if (!g.kept || by_dots || g.k < 1) return false;
    for (int axis = 0; axis < g.axes; ++axis)
      if (g.batch[axis] > 1 && g.b_batch[axis] != 0) return false;
    const i64 bytes = g.k * g.n * static_cast<i64>(sizeof(Brain));
    if (g.m > kKeptToRows || bytes < kKeptBytes) return false;
    if (g.fill_b) return g.m >= kKeptFilledFromRows;
    if (g.b_row < 1 || g.b_col < 1) return false;
    return g.m >= kKeptFromRows && (g.k - 1) * g.b_row + (g.n - 1) * g.b_col + 1 <= 2 * g.k * g.n;
  }

  /* -- a block ---------------------------------------------------------------------------- */
  struct Block {
    i64 index, row, rows, panel, end;
    Pair* b;
    Brain* a;
    Sum *edge, *c;
    i64 c_row;
    bool hold; /* C is memory for one group of rows, used again for the next */
  };

  /* Elements of four bytes: B, a group of rows of A, a tile at the edge of C, C where it has no memory. */
  i64 b_scratch() const { return by_dots || packed ? 0 : pairs * panel * panels_per_block; }
  i64 filled_row() const { return ceil_div(2 * pairs, kFilledGap) * kFilledGap + 2 * kFilledGap; }
  i64 a_scratch() const { return g.fill_a ? filled_row() * tile_rows / 2 : pack_a ? pairs * tile_rows : 0; }
  i64 edge_scratch() const { return by_dots ? 0 : tile_rows * panel; }
  i64 c_scratch() const {
    if (g.c) return 0;
    return (by_dots ? kDotRows : all <= pairs ? tile_rows : rows_per_block) * panels_per_block * panel;
  }
  i64 scratch_size() const { return b_scratch() + a_scratch() + edge_scratch() + c_scratch(); }

  void block(i64 number, float* scratch) const {
    Block at;
    at.row = number % row_blocks * rows_per_block;
    at.panel = number / row_blocks % column_blocks * panels_per_block;
    at.index = number / row_blocks / column_blocks;
    at.rows = least(rows_per_block, g.m - at.row);
    at.end = least(panels, at.panel + panels_per_block);
    at.b = reinterpret_cast<Pair*>(scratch);
    at.a = reinterpret_cast<Brain*>(scratch + b_scratch());
    at.edge = scratch + b_scratch() + a_scratch();
    at.c = g.c ? c_of(at.index) + at.row * g.c_row + at.panel * panel : at.edge + edge_scratch();
    at.c_row = g.c ? g.c_row : panels_per_block * panel;
    at.hold = !g.c && (by_dots || all <= pairs);
    if (by_dots) return dots_of_block(at);
    i64 p = 0;
    do {
      pairs_of_block(at, p, least(pairs, all - p));
      p += pairs;
    } while (p < all); /* once without terms: C is zero */
  }

  Sum* c_at(const Block& at, i64 row) const { return at.hold ? at.c : at.c + row * at.c_row; }

  void finished(const Block& at, i64 i, i64 rows) const {
    const i64 from = at.panel * panel, end = least(g.n, at.end * panel);
    if (g.done) g.done(g.context, c_at(at, i), at.c_row, at.index, at.row + i, rows, from, end - from);
  }

  void dots_of_block(const Block& at) const {
    const i64 from = at.panel * panel, end = least(g.n, at.end * panel);
    const Brain* const a = a_of(at.index) + at.row * g.a_row;
    const Brain* const b = b_of(at.index);
    for (i64 i = 0; i < at.rows; i += kDotRows) {
      const i64 high = least(kDotRows, at.rows - i);
      Sum* const to = c_at(at, i);
      for (i64 j = from; j < end;) {
        const bool single = end - j < kDotCols;
        find_brain_dots(high, single)(g.k, a + i * g.a_row, g.a_row, b + j * g.b_col, g.b_col, to + j - from, at.c_row);
        j += single ? 1 : kDotCols;
      }
      finished(at, i, high);
    }
  }

  void pairs_of_block(const Block& at, i64 p, i64 count) const {
    const i64 terms = least(2 * count, g.k - 2 * p);
    for (i64 j = at.panel; !packed && j < at.end; ++j)
      pack_panel(at.index, j, 2 * p, terms, at.b + (j - at.panel) * pairs * panel);
    for (i64 i = 0; i < at.rows; i += tile_rows) {
      const i64 high = least(tile_rows, at.rows - i);
      const Left left = left_rows(at, i, high, p, terms);
      for (i64 j = at.panel; j < at.end; ++j) tile_of_block(at, i, high, j, p, count, left);
      if (p + count == all) finished(at, i, high);
    }
  }

  /* A group of rows of A, and the steps between rows and pairs. */
  struct Left {
    const Brain* from;
    i64 row, step;
  };

  Left left_rows(const Block& at, i64 i, i64 high, i64 p, i64 terms) const {
    if (g.fill_a) {
      g.fill_a->fill(g.fill_a->context, at.a, filled_row(), at.index, at.row + i, high, 2 * p, terms);
      for (i64 r = 0; terms % 2 != 0 && r < high; ++r) at.a[r * filled_row() + terms] = 0;
      return {at.a, filled_row(), 2};
    }
    const Brain* const from = a_of(at.index) + (at.row + i) * g.a_row + 2 * p * g.a_col;
    if (!pack_a) return {from, g.a_row, 2};
    pack_pairs(from, g.a_col, g.a_row, terms, high, high, reinterpret_cast<Pair*>(at.a));
    return {at.a, 2, 2 * high};
  }

  void tile_of_block(const Block& at, i64 i, i64 high, i64 j, i64 p, i64 count, const Left& left) const {
    const i64 wide = width(j);
    const bool full = high == tile_rows && wide == panel;
    const BrainTile run = full ? whole : find_brain_tile(high, wide / kPairLanes);
    const Pair* const b = packed ? packed + j * all * panel + p * wide : at.b + (j - at.panel) * pairs * panel;
    const bool beside = columns(j) < wide && g.c;
    Sum* const held = c_at(at, i) + (j - at.panel) * panel;
    if (beside && p > 0)
      for (i64 r = 0; r < high; ++r) copy_sums(held + r * at.c_row, columns(j), at.edge + r * panel);
    run(count, left.from, left.row, left.step, b, wide, nullptr, beside ? at.edge : held, beside ? panel : at.c_row,
        p > 0);
    if (beside)
      for (i64 r = 0; r < high; ++r) copy_sums(at.edge + r * panel, columns(j), held + r * at.c_row);
  }

  static void copy_sums(const Sum* from, i64 count, Sum* to) {
    for (i64 j = 0; j < count; j += kPairLanes) {
      const __mmask16 mask = first_pairs(count - j);
      _mm512_mask_storeu_ps(to + j, mask, _mm512_maskz_loadu_ps(mask, from + j));
    }
  }
};

struct BrainPacking {
  const BrainProduct* product;
  Pair* to;
};

inline void brain_packing_range(void* raw, i64 lo, i64 hi, int) {
  const BrainPacking& packing = *static_cast<const BrainPacking*>(raw);
  packing.product->pack_panels(packing.to, lo, hi);
}

/* All panels of B, for a copy that is kept. */
inline void pack_all_brain(const void* raw, void* to) {
  const BrainProduct& product = *static_cast<const BrainProduct*>(raw);
  BrainPacking packing = {&product, static_cast<Pair*>(to)};
  parallel_for(brain_packing_range, &packing, product.panels, ceil_div(kPiece, product.g.k * product.panel));
}

inline KeptUse take_packed_brain(const BrainProduct& product) {
  if (!product.keeps()) return {nullptr, nullptr};
  const Gemm& g = product.g;
  const size_t bytes = static_cast<size_t>(product.packed_size()) * sizeof(Pair);
  if (!g.fill_b) {
    const KeptKey key = {g.b, g.k, g.n, g.b_row, g.b_col, sizeof(Brain), product.panel, 0};
    return kept_take(key, {0, nullptr, nullptr}, bytes, pack_all_brain, &product);
  }
  const Filling& filling = *g.fill_b;
  const KeptKey key = {g.b, 1, filling.bytes, 0, 1, 1, product.panel, filling.tag};
  return kept_take(key, {filling.sides, filling.side, filling.side_bytes}, bytes, pack_all_brain, &product);
}

int multiply_pairs(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  BrainProduct product(*gemm, products);
  const KeptUse kept = take_packed_brain(product);
  product.packed = static_cast<const Pair*>(kept.data);
  const i64 blocks = product.row_blocks * product.column_blocks;
  const i64 work = least(gemm->m, product.rows_per_block) * product.panels_per_block * product.panel * (gemm->k + 1);
  const int failed = run_blocks<float>(product, products * blocks, ceil_div(2 * kPiece, work));
  kept_give_back(kept);
  return failed;
}
