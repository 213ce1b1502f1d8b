/* Convolutions of images whose channels lie innermost. Included once per instruction set.
 *
 * Rows of C are places of the result, columns are kernels; the kernels, packed into panels, are B. What a place sees
 * lies in runs of all channels, one for each element of the kernel: the rows of a tile are read there, each by a
 * pointer of its own, and what lies outside of the image is a run of zeros. Runs of few channels are joined to those of
 * a row of the kernel where they lie side by side, which are copied at the edges alone; others are copied first, and
 * those that are not whole terms, lest a term has an element that the place does not see. */

/* Channels from which on they are read where they lie. */
constexpr i64 kRunFrom = 16;
/* Tiles whose places are looked up at once, and elements that their rows have at most where they are copied. */
constexpr i64 kTilesAtOnce = 8;
constexpr i64 kCopiedMost = 24 << 10;
/* Rows of a tile at most: each has a pointer of its own, for which there must be registers. */
constexpr int kRunRows = 8;
constexpr int rows_of_runs(i64 vectors) { return most_rows(vectors) < kRunRows ? most_rows(vectors) : kRunRows; }
/* Places up to which the packed kernels are kept from call to call. */
constexpr i64 kKeptToPlaces = 4096;
/* Bytes of packed kernels that a block goes over. */
constexpr i64 kKernelBytes = 1 << 20;

/* c[kRows][kVectors * width] = sum over runs of `count` terms of what the rows' pointers show times the rows of b. */
template <class Kind, int kRows, int kVectors>
__attribute__((noinline)) void tile_of_runs(i64 runs, i64 count, const typename Kind::Element* const* seen,
                                            const typename Kind::Term* b, typename Kind::Sum* c, i64 c_row) {
  using Sum = typename Kind::Sum;
  using Unaligned = typename Lanes<Sum>::Unaligned;
  constexpr int kWidth = Lanes<Sum>::kWidth;
  typename Kind::Vector sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) sums[i][j] = typename Kind::Vector{};
  }
  for (i64 run = 0; run < runs; ++run) {
    const typename Kind::Element* rows[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) rows[i] = *seen++;
    for (i64 p = 0; p < count; ++p) {
      typename Kind::Factors right[kVectors];
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) {
        right[j] = Kind::factors(b + j * kWidth);
        __builtin_prefetch(b + kAhead * kVectors * kWidth + j * kWidth);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const typename Kind::Factors left = Kind::everywhere(rows[i] + p * Kind::kElements);
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) Kind::add(sums[i][j], left, right[j]);
      }
      step(b, kVectors * kWidth);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) *reinterpret_cast<Unaligned*>(c + i * c_row + j * kWidth) = sums[i][j];
  }
}

template <class Kind>
using RunTile = void (*)(i64, i64, const typename Kind::Element* const*, const typename Kind::Term*,
                         typename Kind::Sum*, i64);

template <class Kind, int kVectors, int kRows>
RunTile<Kind> run_tile_of_rows(i64 rows) {
  if constexpr (kRows == 1)
    return tile_of_runs<Kind, 1, kVectors>;
  else
    return rows == kRows ? tile_of_runs<Kind, kRows, kVectors> : run_tile_of_rows<Kind, kVectors, kRows - 1>(rows);
}

/* The kernel for a tile of `rows` rows, at most rows_of_runs(vectors), and `vectors` vectors. */
template <class Kind, int kVectors = kTileVectors>
RunTile<Kind> find_run_tile(i64 rows, i64 vectors) {
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return find_run_tile<Kind, kVectors - 1>(rows, vectors);
  return run_tile_of_rows<Kind, kVectors, rows_of_runs(kVectors)>(rows);
}

template <class Kind>
struct Places {
  using Element = typename Kind::Element;
  using Term = typename Kind::Term;
  using Sum = typename Kind::Sum;
  static constexpr i64 kWidth = Lanes<Sum>::kWidth, kElements = Kind::kElements;

  const Gemm& g;
  const Windows& w;
  Operands<Kind> operands;
  i64 taps, channels, groups; /* elements of a kernel's plane, channels of a group, groups */
  i64 terms;                  /* of all that a place sees */
  i64 tile_rows, tile_vectors, panel, panels;
  i64 rows_at_once, rows_per_block, row_blocks, panels_per_block, column_blocks;
  bool copies; /* what tiles see is copied into rows */
  bool joins;  /* runs are those of all elements of a row of the kernel */
  i64 runs, run; /* runs that a place sees, and elements of one */
  const Term* packed = nullptr;

  Places(const Gemm& gemm, i64 products) : g(gemm), w(*gemm.windows), operands{gemm} {
    taps = w.kernel[0] * w.kernel[1];
    channels = taps ? g.k / taps : 0;
    terms = ceil_div(g.k, kElements);
    groups = operands.groups(g.b_batch);
    const bool few = channels < kRunFrom && g.k <= kCopiedMost / kTilesAtOnce;
    copies = channels % kElements != 0 || (few && (w.dilation[1] != 1 || w.step[1] != channels));
    joins = few && !copies;
    runs = copies ? 1 : joins ? w.kernel[0] : taps;
    run = copies ? terms * kElements : joins ? w.kernel[1] * channels : channels;
    choose_tile();
    choose_blocks(products);
  }

  void choose_tile() {
    const i64 vectors = ceil_div(g.n, kWidth);
    tile_vectors = ceil_div(vectors, ceil_div(vectors, kTileVectors));
    if (g.tile_vectors > 0) tile_vectors = least(g.tile_vectors, tile_vectors);
    panel = tile_vectors * kWidth;
    panels = ceil_div(g.n, panel);
    tile_rows = ceil_div(g.m, ceil_div(g.m, rows_of_runs(tile_vectors)));
    rows_at_once = tile_rows * kTilesAtOnce;
    if (copies || joins) rows_at_once = most(1, least(kTilesAtOnce, kCopiedMost / (g.k * tile_rows + 1))) * tile_rows;
  }

  void choose_blocks(i64 products) {
    const i64 fitting = kKernelBytes / static_cast<i64>(sizeof(Term)) / (terms * panel + 1);
    column_blocks = ceil_div(panels, least(panels, g.block_panels > 0 ? g.block_panels : most(1, fitting)));
    const i64 wanted = threads_here() > 1 ? ceil_div(threads_here() * kPiecesPerThread, products) : 1;
    const i64 worth = ceil_div(g.m * g.n * (terms + 1), kPiece);
    const i64 chunks = ceil_div(g.m, rows_at_once);
    row_blocks = least(chunks, ceil_div(least(wanted, worth), column_blocks));
    if (row_blocks * column_blocks < least(wanted, worth))
      column_blocks = least(panels, ceil_div(least(wanted, worth), row_blocks));
    rows_per_block = ceil_div(chunks, row_blocks) * rows_at_once;
    row_blocks = ceil_div(g.m, rows_per_block);
    panels_per_block = ceil_div(panels, column_blocks);
    column_blocks = ceil_div(panels, panels_per_block);
  }

  i64 vectors(i64 number) const { return ceil_div(least(panel, g.n - number * panel), kWidth); }
  i64 group_size() const { return terms * ((panels - 1) * panel + vectors(panels - 1) * kWidth); }
  i64 packed_size() const { return groups * group_size() + kAhead * panel; }

  /* Panels [from, end) of those of all groups. */
  void make_parts(Term* to, i64 from, i64 end) const {
    for (i64 number = from; number < end; ++number) {
      const i64 group = number / panels, j = number % panels;
      Kind::pack(operands.b_of(group) + j * panel * g.b_col, g.b_row, g.b_col, g.k, least(panel, g.n - j * panel),
                 vectors(j) * kWidth, to + group * group_size() + j * terms * panel);
    }
  }

  bool keeps() const {
    return g.kept && groups == 1 && g.m <= kKeptToPlaces && lies_close(g.k, g.b_row, g.n, g.b_col) &&
           g.k * g.n * static_cast<i64>(sizeof(Element)) >= kKeptBytes;
  }

  /* Elements of scratch: pointers, a run of zeros and copied rows, a tile at the edge of C, C where it has no memory. */
  i64 table_size() const { return held_by<Sum, const Element*>(runs * rows_at_once); }
  i64 row_size() const { return terms * kElements; }
  i64 rows_size() const { return held_by<Sum, Element>(run + (copies || joins ? rows_at_once * row_size() : 0)); }
  i64 edge_size() const { return tile_rows * panel; }
  i64 held_row() const { return panels_per_block * panel; }
  i64 held_size() const { return g.c ? 0 : rows_at_once * held_row(); }
  i64 scratch_size() const { return table_size() + edge_size() + held_size() + rows_size() + kSlack<Sum>; }

  struct Work {
    const Element* image;
    const Term* kernels;
    const Element** seen;  /* for each tile, run and row of it, where the run lies */
    Sum *edge, *held;
    Element *zeros, *rows; /* a run of zeros, copied rows */
  };

  void block(i64 number, Sum* scratch) const {
    const i64 blocks = row_blocks * column_blocks, index = number / blocks;
    const i64 from = number % row_blocks * rows_per_block, end = least(g.m, from + rows_per_block);
    const i64 first = number / row_blocks % column_blocks * panels_per_block;
    const i64 last = least(panels, first + panels_per_block);
    Work work;
    work.image = operands.a_of(index);
    work.kernels = packed + index % groups * group_size();
    work.seen = reinterpret_cast<const Element**>(scratch);
    work.edge = scratch + table_size();
    work.held = work.edge + edge_size();
    work.zeros = reinterpret_cast<Element*>(work.held + held_size());
    work.rows = work.zeros + run;
    fill_zeros(work.zeros, run);
    for (i64 row = from; row < end; row += rows_at_once)
      some_rows(work, index, row, least(rows_at_once, end - row), first, last);
  }

  /* Rows [row, row + count) of the result, of panels [first, last). */
  void some_rows(const Work& work, i64 index, i64 row, i64 count, i64 first, i64 last) const {
    find_runs(work, row, count);
    Sum* const to = g.c ? operands.c_of(index) + row * g.c_row + first * panel : work.held;
    const i64 to_row = g.c ? g.c_row : held_row();
    for (i64 j = first; j < last; ++j)
      for (i64 i = 0; i < count; i += tile_rows)
        one_tile(work, i, least(tile_rows, count - i), j, to + i * to_row + (j - first) * panel, to_row);
    const i64 end = least(g.n, last * panel);
    if (g.done) g.done(g.context, to, to_row, index, row, count, first * panel, end - first * panel);
  }

  void one_tile(const Work& work, i64 i, i64 high, i64 j, Sum* to, i64 to_row) const {
    const i64 wide = vectors(j), cols = least(panel, g.n - j * panel);
    const RunTile<Kind> sum = find_run_tile<Kind>(high, wide);
    const bool beside = cols < wide * kWidth && g.c;
    Sum* const target = beside ? work.edge : to;
    const i64 target_row = beside ? panel : to_row;
    const Term* const b = work.kernels + j * terms * panel;
    sum(runs, run / kElements, work.seen + i * runs, b, target, target_row);
    if (!beside) return;
    for (i64 r = 0; r < high; ++r) copy_row(work.edge + r * panel, cols, to + r * to_row);
  }

  /* Where the runs of the rows lie: those of a tile's rows side by side. */
  void find_runs(const Work& work, i64 row, i64 count) const {
    i64 y = row / w.columns, x = row % w.columns;
    for (i64 i = 0; i < count; ++i) {
      const i64 start = i / tile_rows * tile_rows, high = least(tile_rows, count - start);
      const Element** const at = work.seen + start * runs + (i - start);
      const i64 top = y * w.stride[0] - w.padding[0], left = x * w.stride[1] - w.padding[1];
      if (copies || joins)
        find_lines(work, work.rows + i * row_size(), top, left, at, high);
      else
        find_taps(work, top, left, at, high);
      if (++x == w.columns) x = 0, ++y;
    }
  }

  /* Those of one place, `high` pointers apart: of each element of the kernel. */
  void find_taps(const Work& work, i64 top, i64 left, const Element** at, i64 high) const {
    for (i64 ky = 0; ky < w.kernel[0]; ++ky) {
      const i64 y = top + ky * w.dilation[0];
      const bool inside = y >= 0 && y < w.sizes[0];
      for (i64 kx = 0; kx < w.kernel[1]; ++kx, at += high) {
        const i64 x = left + kx * w.dilation[1];
        *at = inside && x >= 0 && x < w.sizes[1] ? work.image + y * w.step[0] + x * w.step[1] : work.zeros;
      }
    }
  }

  /* The same of each row of the kernel; those at the edges are copied, or all of them to lie side by side. */
  void find_lines(const Work& work, Element* copy, i64 top, i64 left, const Element** at, i64 high) const {
    const i64 length = w.kernel[1] * channels;
    const bool beside = w.dilation[1] == 1 && w.step[1] == channels;
    const bool within = beside && left >= 0 && left + w.kernel[1] <= w.sizes[1];
    if (copies) *at = copy;
    if (within && top >= 0 && top + (w.kernel[0] - 1) * w.dilation[0] < w.sizes[0]) {
      const Element* line = work.image + top * w.step[0] + left * w.step[1];
      const i64 down = w.dilation[0] * w.step[0];
      for (i64 ky = 0; ky < w.kernel[0]; ++ky, line += down, at += high)
        if (copies)
          Kind::copy(line, length, copy), copy += length;
        else
          *at = line;
      if (copies && g.k % kElements != 0) *copy = 0;
      return;
    }
    for (i64 ky = 0; ky < w.kernel[0]; ++ky, copy += length) {
      const i64 y = top + ky * w.dilation[0];
      const bool inside = y >= 0 && y < w.sizes[0];
      const Element* const line = work.image + y * w.step[0];
      const Element* found = copy;
      if (!copies && (!inside || within))
        found = inside ? line + left * w.step[1] : work.zeros;
      else if (!inside)
        for (i64 t = 0; t < length; ++t) copy[t] = 0;
      else if (within)
        Kind::copy(line + left * w.step[1], length, copy);
      else
        copy_line(line, left, copy);
      if (!copies) *at = found, at += high;
    }
    if (copies && g.k % kElements != 0) *copy = 0;
  }

  void copy_line(const Element* line, i64 left, Element* to) const {
    for (i64 kx = 0; kx < w.kernel[1]; ++kx, to += channels) {
      const i64 x = left + kx * w.dilation[1];
      const bool inside = x >= 0 && x < w.sizes[1];
      for (i64 t = 0; t < channels; ++t) to[t] = inside ? line[x * w.step[1] + t] : 0;
    }
  }
};

/* All panels of the kernels. */
template <class Kind>
void pack_kernels(const void* raw, void* to) {
  const Places<Kind>& places = *static_cast<const Places<Kind>*>(raw);
  make_copy(places, static_cast<typename Kind::Term*>(to), places.groups * places.panels, places.g.k * places.panel);
}

/* A kept copy of the kernels. */
template <class Kind>
KeptUse take_kernels(const Places<Kind>& places) {
  if (!places.keeps()) return {nullptr, nullptr};
  const Gemm& g = places.g;
  const KeptKey key = {g.b, g.k, g.n, g.b_row, g.b_col, sizeof(typename Kind::Element), places.panel, 0};
  const size_t bytes = static_cast<size_t>(places.packed_size()) * sizeof(typename Kind::Term);
  return kept_take(key, {0, nullptr, nullptr}, bytes, pack_kernels<Kind>, &places);
}

template <class Kind>
int convolve_places(const Gemm& g, i64 products) {
  Places<Kind> places(g, products);
  const KeptUse kept = take_kernels(places);
  Scratch<typename Kind::Term> packed;
  places.packed = static_cast<const typename Kind::Term*>(kept.data);
  if (!places.packed) {
    if (!packed.reserve(places.packed_size())) return 1;
    pack_kernels<Kind>(&places, packed.data);
    places.packed = packed.data;
  }
  const i64 blocks = places.row_blocks * places.column_blocks;
  const i64 work = places.rows_per_block * places.panels_per_block * places.panel * (places.terms + 1);
  const int failed = run_blocks<typename Kind::Sum>(places, products * blocks, ceil_div(kPiece, work));
  kept_give_back(kept);
  return failed;
}
