/* The loops around the register tiles of bfloat16 (brain_tile.h), in the manner of product.h, over the blocks of
 * blocking.h: a block of B is packed into the second-level cache, then the rows of A go over it. Sums go on from what
 * is in C where terms are left, so that the bits depend on the sizes and strides alone. Included by avx512_bf16.cpp. */

/* Pairs of terms for which B is packed at once, and bytes. */
constexpr i64 kBrainPairs = 512, kBrainBlockBytes = 512 << 10;
/* Terms of a B that is made, as they are made before they are woven. */
constexpr i64 kBrainFilledTerms = 64;

struct BrainTypes {
  using Left = Brain;
  using Element = Brain;
  using Packed = Pair;
  using Sum = dyncomp::Sum;
  static constexpr i64 kWork = 2 * kPiece;
};

struct BrainProduct : Blocking<BrainProduct, BrainTypes> {
  bool pack_a;
  BrainTile whole;

  /* Its terms are pairs of them. */
  BrainProduct(const Gemm& gemm, i64 products) : Blocking(gemm, pairs_of(gemm.k)) {
    const i64 wide = ceil_div(g.n, kWidth);
    choose_tiles(ceil_div(wide, ceil_div(wide, kTileVectors)));
    whole = find_brain_tile(tile_rows, tile_vectors);
    by_dots = !g.fill_a && !g.fill_b && g.m < kDotRowsMost && (g.a_col == 1 || g.k == 1);
    by_dots = by_dots && g.b_row == 1 && g.b_col != 1;
    pack_a = !g.fill_a && (g.a_col != 1 || g.k % 2 != 0);
    terms = length > 0 ? ceil_div(length, ceil_div(length, kBrainPairs)) : 1;
    cut(products, most(1, kBrainBlockBytes / 4 / terms / panel));
  }

  /* -- packing ---------------------------------------------------------------------------- */
  void pack_panels(Pair* to, i64 from, i64 end) const {
    for (i64 j = from; j < end; ++j) pack_panel(0, j, 0, g.k, to + j * length * panel);
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

  bool keeps() const { return g.k > 0 && may_keep(kKeptBytes); }

  /* -- a block ---------------------------------------------------------------------------- */
  /* Elements of four bytes: B, and a group of rows of A. */
  i64 b_scratch() const { return by_dots || packed ? 0 : terms * panel * panels_per_block; }
  i64 filled_row() const { return ceil_div(2 * terms, kFilledGap) * kFilledGap + 2 * kFilledGap; }
  i64 a_scratch() const { return g.fill_a ? filled_row() * tile_rows / 2 : pack_a ? terms * tile_rows : 0; }

  static BrainDots find_dots_of(i64 rows, i64 cols) { return find_brain_dots(rows, cols); }

  void terms_of_block(const Block& at, i64 p, i64 count) const {
    const i64 single = least(2 * count, g.k - 2 * p);
    for (i64 j = at.panel; !packed && j < at.end; ++j)
      pack_panel(at.index, j, 2 * p, single, at.b + (j - at.panel) * terms * panel);
    for (i64 i = 0; i < at.rows; i += tile_rows) {
      const i64 high = least(tile_rows, at.rows - i);
      const Left left = left_rows(at, i, high, p, single);
      for (i64 j = at.panel; j < at.end; ++j) tile_of_block(at, i, high, j, p, count, left);
      if (p + count == length) finished(at, i, high);
    }
  }

  /* A group of rows of A, and the steps between rows and pairs. */
  struct Left {
    const Brain* from;
    i64 row, step;
  };

  Left left_rows(const Block& at, i64 i, i64 high, i64 p, i64 single) const {
    if (g.fill_a) {
      g.fill_a->fill(g.fill_a->context, at.a, filled_row(), at.index, at.row + i, high, 2 * p, single);
      for (i64 r = 0; single % 2 != 0 && r < high; ++r) at.a[r * filled_row() + single] = 0;
      return {at.a, filled_row(), 2};
    }
    const Brain* const from = a_of(at.index) + (at.row + i) * g.a_row + 2 * p * g.a_col;
    if (!pack_a) return {from, g.a_row, 2};
    pack_pairs(from, g.a_col, g.a_row, single, high, high, reinterpret_cast<Pair*>(at.a));
    return {at.a, 2, 2 * high};
  }

  void tile_of_block(const Block& at, i64 i, i64 high, i64 j, i64 p, i64 count, const Left& left) const {
    const i64 wide = width(j);
    const bool full = high == tile_rows && wide == panel;
    const BrainTile run = full ? whole : find_brain_tile(high, wide / kPairLanes);
    const Pair* const b = packed ? packed + j * length * panel + p * wide : at.b + (j - at.panel) * terms * panel;
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

int multiply_pairs(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  BrainProduct product(*gemm, products);
  return run_product(product, products);
}
