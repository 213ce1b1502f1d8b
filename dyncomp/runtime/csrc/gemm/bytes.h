/* Products of 8-bit integers, summed in int32, in the manner of product.h, over the blocks of blocking.h. Both operands are
 * widened to 16 bits, whose products processors add in pairs (pairs.h): A as a whole beforehand, B as its blocks are
 * packed, or in registers where its elements are used for a few rows only. Included once per instruction set. */

/* Multiplications of a piece of work: they take half as long as those of float32. */
constexpr i64 kWorkOfPairs = 2 * kPiece;
/* Terms of a B that is made, as they are made before they are widened. */
constexpr i64 kFilledBytes = 64;

inline i64 pairs_of(i64 terms) { return (terms + 1) / 2; }

/* c[kRows][kVectors * width] = (or, to go on, +=) sum over pairs of a[., p] b[p, .]; rows of B one after the other. */
template <int kRows, int kVectors>
__attribute__((noinline)) void pair_tile(i64 pairs, const short* a, i64 a_row, const short* b, Total* c, i64 c_row,
                                         bool goes_on) {
  constexpr i64 kWidth = Lanes<Total>::kWidth;
  using Unaligned = Lanes<Total>::Unaligned;
  Totals sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j)
      sums[i][j] = goes_on ? *reinterpret_cast<const Unaligned*>(c + i * c_row + j * kWidth) : Totals{};
  }
  const short* rows[(kRows + 2) / 3]; /* as in tile.h */
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i += 3) rows[i / 3] = a + i * a_row;
  for (i64 p = 0; p < pairs; ++p) {
    Shorts right[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) right[j] = *reinterpret_cast<const UnalignedShorts*>(b + j * kTermLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Shorts left = everywhere(rows[i / 3] + i % 3 * a_row);
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = add_pairs(sums[i][j], left, right[j]);
    }
    step(b, kVectors * kTermLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; i += 3) step(rows[i / 3], 2);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) *reinterpret_cast<Unaligned*>(c + i * c_row + j * kWidth) = sums[i][j];
  }
}

using PairTile = void (*)(i64, const short*, i64, const short*, Total*, i64, bool);

/* The kernel for a tile of `rows` rows, at most most_rows(vectors), and `vectors` vectors. */
template <int kVectors = kTileVectors, int kRows = most_rows(kVectors)>
PairTile find_pair_tile(i64 rows, i64 vectors) {
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return find_pair_tile<kVectors - 1>(rows, vectors);
  if constexpr (kRows > 1)
    if (rows < kRows) return find_pair_tile<kVectors, kRows - 1>(rows, vectors);
  return pair_tile<kRows, kVectors>;
}

/* c[kRows][kCols] = sum over p of a[., p] * b[p, .], where both are contiguous along p; behind the terms of A lie zeros. */
template <class Byte, int kRows, int kCols>
__attribute__((noinline)) void pair_dots(i64 k, const short* a, i64 a_row, const Byte* b, i64 b_col, Total* c, i64 c_row) {
  Totals sums[kRows][kCols];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) sums[i][j] = Totals{};
  }
  Byte ends[kCols][kTermLanes];
  for (i64 p = 0; p < k; p += kTermLanes) {
    const bool whole = p + kTermLanes <= k;
    Shorts right[kCols];
#pragma GCC unroll 16
    for (int j = 0; j < kCols; ++j) {
      if (!whole)
        for (i64 q = 0; q < kTermLanes; ++q) ends[j][q] = p + q < k ? b[j * b_col + p + q] : Byte{0};
      right[j] = widened_terms(whole ? b + j * b_col + p : ends[j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Shorts left = *reinterpret_cast<const UnalignedShorts*>(a + i * a_row + p);
#pragma GCC unroll 16
      for (int j = 0; j < kCols; ++j) sums[i][j] = add_pairs(sums[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) lane_sums<Total, kCols>(sums[i], c + i * c_row);
}

template <class Byte>
using PairDots = void (*)(i64, const short*, i64, const Byte*, i64, Total*, i64);

template <class Byte, int kRows = kDotRows>
PairDots<Byte> find_pair_dots(i64 rows, i64 cols) {
  if constexpr (kRows > 1)
    if (rows < kRows) return find_pair_dots<Byte, kRows - 1>(rows, cols);
  if (kRows == 1 && cols == kSingleDotCols) return pair_dots<Byte, 1, kSingleDotCols>;
  return cols == 1 ? pair_dots<Byte, kRows, 1> : pair_dots<Byte, kRows, kDotCols>;
}

/* -- packing B ------------------------------------------------------------------------------------ */
/* k rows of `cols` elements as rows of `width` pairs, whatever beside the last term if it has no partner: A has a zero
 * there. */
template <class Byte>
void pack_byte_pairs(const Byte* b, i64 row, i64 col, i64 k, i64 cols, i64 width, short* to) {
  constexpr i64 kWidth = Lanes<Total>::kWidth;
  i64 done = 0; /* columns that are turned */
  if (row == 1 && col != 1) {
    const i64 whole = k / kTermLanes * kTermLanes;
    for (; whole == k && done + kWidth <= cols; done += kWidth)
      for (i64 p = 0; p < k; p += kTermLanes) {
        Lanes<int>::Vector rows[kWidth];
#pragma GCC unroll 16
        for (i64 j = 0; j < kWidth; ++j)
          rows[j] = reinterpret_cast<Lanes<int>::Vector>(widened_terms(b + (done + j) * col + p));
        swap_halves<int, kWidth / 2>(rows);
#pragma GCC unroll 16
        for (i64 q = 0; q < kWidth; ++q)
          *reinterpret_cast<UnalignedShorts*>(to + (p / 2 + q) * 2 * width + 2 * done) =
              reinterpret_cast<Shorts>(rows[q]);
      }
  }
  for (i64 p = 0; p < k; p += 2) {
    const Byte *const now = b + p * row, *const below = p + 1 < k ? now + row : now;
    short* const out = to + p * width;
    i64 j = done;
    for (; col == 1 && j + kTermLanes <= cols; j += kTermLanes) {
      __builtin_prefetch(now + kAhead * row + j);
      __builtin_prefetch(below + kAhead * row + j);
      const Woven made = woven(now + j, below + j);
      *reinterpret_cast<UnalignedShorts*>(out + 2 * j) = made.first;
      *reinterpret_cast<UnalignedShorts*>(out + 2 * j + kTermLanes) = made.second;
    }
    for (; j < cols; ++j) out[2 * j] = now[j * col], out[2 * j + 1] = below[j * col];
    for (j = most(done, cols); j < width; ++j) out[2 * j] = out[2 * j + 1] = 0;
  }
}

/* -- the product ---------------------------------------------------------------------------------- */
template <class Byte>
struct ByteTypes {
  using Left = short;
  using Element = Byte;
  using Packed = short;
  using Sum = Total;
  static constexpr i64 kWork = kWorkOfPairs;
};

/* Of a widened A; its terms are pairs. */
template <class Byte>
struct ByteProduct : Blocking<ByteProduct<Byte>, ByteTypes<Byte>> {
  using Walk = Blocking<ByteProduct<Byte>, ByteTypes<Byte>>;
  using typename Walk::Block;
  using Walk::g, Walk::length, Walk::packed, Walk::by_dots, Walk::terms;
  using Walk::tile_rows, Walk::tile_vectors, Walk::panel, Walk::panels, Walk::panels_per_block;
  using Walk::columns, Walk::width, Walk::a_of, Walk::b_of, Walk::c_at, Walk::finished;

  PairTile whole;

  ByteProduct(const Gemm& gemm, i64 products) : Walk(gemm, pairs_of(gemm.k)) {
    const i64 wide = ceil_div(g.n, Walk::kWidth);
    this->choose_tiles(ceil_div(wide, ceil_div(wide, kTileVectors)));
    whole = find_pair_tile(tile_rows, tile_vectors);
    by_dots = !g.fill_b && g.m < kDotRowsMost && g.b_row == 1 && g.b_col != 1;
    terms = length > 0 ? ceil_div(length, ceil_div(length, kTerms / 2)) : 1;
    this->cut(products, most(1, kBlockBytes / 4 / terms / panel));
  }

  void pack_panels(short* to, i64 from, i64 end) const {
    for (i64 j = from; j < end; ++j) pack_panel(0, j, 0, g.k, to + 2 * j * length * panel);
  }

  /* `count` rows of a panel from row p on. */
  void pack_panel(i64 index, i64 j, i64 p, i64 count, short* to) const {
    if (g.fill_b) return fill_panel(index, j, p, count, to);
    pack_byte_pairs(b_of(index) + p * g.b_row + j * panel * g.b_col, g.b_row, g.b_col, count, columns(j), width(j), to);
  }

  void fill_panel(i64 index, i64 j, i64 p, i64 count, short* to) const {
    const Filling& filling = *g.fill_b;
    const bool turned = g.b_row == 1 && g.b_col != 1;
    const i64 from = j * panel, cols = columns(j);
    Byte made[kFilledBytes * kTileVectors * Walk::kWidth] __attribute__((aligned(64)));
    for (i64 q = 0; q < count; q += kFilledBytes, to += kFilledBytes * width(j)) {
      const i64 now = least(kFilledBytes, count - q);
      if (turned)
        filling.fill(filling.context, made, kFilledBytes, index, from, cols, p + q, now);
      else
        filling.fill(filling.context, made, panel, index, p + q, now, from, cols);
      pack_byte_pairs(made, turned ? 1 : panel, turned ? kFilledBytes : 1, now, cols, width(j), to);
    }
  }

  /* A copy is twice as long as what it is made of. */
  bool keeps() const { return g.k > 0 && this->may_keep(kKeptBytes); }
  i64 packed_size() const { return 2 * Walk::packed_size(); }

  /* Elements of four bytes, as pairs are. */
  i64 b_scratch() const { return by_dots || packed ? 0 : terms * panel * panels_per_block; }
  i64 a_scratch() const { return 0; }

  static PairDots<Byte> find_dots_of(i64 rows, i64 cols) { return find_pair_dots<Byte>(rows, cols); }

  void terms_of_block(const Block& at, i64 p, i64 count) const {
    const i64 single = least(2 * count, g.k - 2 * p);
    for (i64 j = at.panel; !packed && j < at.end; ++j)
      pack_panel(at.index, j, 2 * p, single, at.b + 2 * (j - at.panel) * terms * panel);
    const short* const a = a_of(at.index) + at.row * g.a_row + 2 * p;
    for (i64 i = 0; i < at.rows; i += tile_rows) {
      const i64 high = least(tile_rows, at.rows - i);
      for (i64 j = at.panel; j < at.end; ++j) tile_of_block(at, i, high, j, p, count, a + i * g.a_row);
      if (p + count == length) finished(at, i, high);
    }
  }

  void tile_of_block(const Block& at, i64 i, i64 high, i64 j, i64 p, i64 count, const short* a) const {
    const i64 wide = width(j);
    const bool full = high == tile_rows && wide == panel;
    const PairTile run = full ? whole : find_pair_tile(high, wide / Walk::kWidth);
    const short* const b =
        packed ? packed + 2 * (j * length * panel + p * wide) : at.b + 2 * (j - at.panel) * terms * panel;
    const bool beside = columns(j) < wide && g.c; /* a tile that reaches over the last column */
    Total* const held = c_at(at, i) + (j - at.panel) * panel;
    Total* const to = beside ? at.edge : held;
    const i64 to_row = beside ? panel : at.c_row;
    if (beside && p > 0) copy_sums(held, at.c_row, high, columns(j), at.edge, panel);
    run(count, a, g.a_row, b, to, to_row, p > 0);
    if (beside) copy_sums(at.edge, panel, high, columns(j), held, at.c_row);
  }

  static void copy_sums(const Total* from, i64 from_row, i64 rows, i64 cols, Total* to, i64 to_row) {
    for (i64 i = 0; i < rows; ++i) copy_row(from + i * from_row, cols, to + i * to_row);
  }
};

/* -- widening A ----------------------------------------------------------------------------------- */
/* All different matrices A of a batch, row by row. */
struct WidenedRows {
  const Gemm& g;
  short* to;
  i64 row; /* terms from one row to the next, with room for zeros */
};

template <class Byte>
void widen_terms(const Byte* from, i64 step, i64 count, short* to) {
  i64 p = 0;
  for (; step == 1 && p + kTermLanes <= count; p += kTermLanes)
    *reinterpret_cast<UnalignedShorts*>(to + p) = widened_terms(from + p);
  for (; p < count; ++p) to[p] = from[p * step];
}

/* Where the first product lies that has a matrix A, of those that differ. */
inline i64 product_with(const Gemm& g, i64 matrix) {
  i64 index = 0, inner = 1;
  for (int axis = g.axes - 1; axis >= 0; --axis) {
    if (g.a_batch[axis] != 0) {
      index += matrix % g.batch[axis] * inner;
      matrix /= g.batch[axis];
    }
    inner *= g.batch[axis];
  }
  return index;
}

template <class Byte>
void widen_range(void* raw, i64 lo, i64 hi, int) {
  const WidenedRows& rows = *static_cast<const WidenedRows*>(raw);
  const Gemm& g = rows.g;
  for (i64 number = lo; number < hi; ++number) {
    const i64 index = product_with(g, number / g.m), i = number % g.m;
    short* const to = rows.to + number * rows.row;
    if (g.fill_a) { /* made in the second half of its row */
      Byte* const made = reinterpret_cast<Byte*>(to + rows.row) - rows.row;
      g.fill_a->fill(g.fill_a->context, made, rows.row, index, i, 1, 0, g.k);
      widen_terms(made, 1, g.k, to);
    } else {
      const Byte* const a = static_cast<const Byte*>(g.a) + batch_offset(g, index, g.a_batch);
      widen_terms(a + i * g.a_row, g.a_col, g.k, to);
    }
    for (i64 p = g.k; p < rows.row; ++p) to[p] = 0;
  }
}

/* The product with A widened, zeros behind its rows; 1 if there was no memory. */
template <class Byte>
int multiply_widened_rows(const Gemm& g, i64 products) {
  if (goes_by_rows<Twos<Byte>>(g)) return multiply_rows<Twos<Byte>>(g, products);
  ByteProduct<Byte> product(g, products);
  return run_product(product, products);
}

int multiply_bytes(const Gemm* gemm) {
  Gemm g = *gemm;
  i64 products = 1, matrices = 1;
  for (int axis = 0; axis < g.axes; ++axis) products *= g.batch[axis];
  if (products == 0 || g.m == 0 || g.n == 0) return 0;
  const i64 row = ceil_div(g.k, kFilledGap) * kFilledGap + 4 * kFilledGap;
  for (int axis = g.axes - 1; axis >= 0; --axis) {
    if (g.a_batch[axis] == 0) continue;
    g.a_batch[axis] = matrices * g.m * row;
    matrices *= g.batch[axis];
  }
  Scratch<short> memory;
  if (!memory.reserve(matrices * g.m * row)) return 1;
  WidenedRows rows = {*gemm, memory.data, row};
  const bool is_signed = g.a_bytes == kSignedBytes;
  parallel_for(is_signed ? widen_range<signed char> : widen_range<unsigned char>, &rows, matrices * g.m,
               ceil_div(kPiece, g.k + 1));
  g.a = memory.data;
  g.a_row = row;
  g.a_col = 1;
  g.fill_a = nullptr;
  return g.b_bytes == kSignedBytes ? multiply_widened_rows<signed char>(g, products)
                                   : multiply_widened_rows<unsigned char>(g, products);
}
