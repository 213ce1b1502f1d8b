/* Convolutions that read the image where it lies. Included once per instruction set.
 *
 * The image is copied once, with its border of zeros, into planes in which what a step of the windows reaches over
 * lies apart ("phases"): then an element of the kernel sees, for one place of the result after the other, elements
 * that lie one after the other, also from one row of the result to the next but for the few places between them.
 * So the rows of B lie in the copy, each at a place of its own, and there is nothing more to copy; what the places
 * between rows give is dropped. */

/* Bytes of the copy that rows of the result are finished with, and of one at all. */
constexpr i64 kStripBytes = 640 << 10;
constexpr i64 kStripBytesMost = 8 << 20;
/* Steps that windows take at most. */
constexpr i64 kMostPhases = 32;

template <class Kind>
struct Shifts {
  using Element = typename Kind::Element;
  using Term = typename Kind::Term;
  using Sum = typename Kind::Sum;
  static constexpr i64 kWidth = Lanes<Sum>::kWidth, kElements = Kind::kElements;

  const Gemm& g;
  const Windows& w;
  Operands<Kind> operands;
  i64 channels, layers, terms; /* channels; where terms are of some of them, layers of such; terms of a place */
  i64 wide, planes;            /* elements of a row of the copy, planes of a layer */
  i64 phases[2];              /* of rows and columns: those that the kernel sees */
  i64 rank[2][kMostPhases];   /* of each phase, its number among them, or -1 */
  i64 strip, strips, across;  /* rows of the result of a strip, strips, and places of a row of it */
  i64 plane;                  /* elements of a plane of the copy */
  i64 tile_rows, tile_vectors, panel, rows_per_block, row_blocks;
  bool pack_a;
  const Term* woven = nullptr; /* the kernels where terms are of several channels: a row each */

  Shifts(const Gemm& gemm, i64 products) : g(gemm), w(*gemm.windows), operands{gemm} {
    channels = g.k / area();
    layers = ceil_div(channels, kElements);
    terms = layers * area();
    pack_a = kElements == 1 && g.a_col != 1;
    if (!fits()) return;
    find_phases(0);
    find_phases(1);
    planes = phases[0] * phases[1];
    across = w.columns;
    wide = row_size(across);
    choose_strip(products);
    plane = rows_of(strip) * wide;
    choose_tile();
  }

  i64 area() const { return w.kernel[0] * w.kernel[1]; }
  i64 result_rows() const { return g.n / w.columns; }
  i64 reach(int axis) const { return (w.kernel[axis] - 1) * w.dilation[axis]; }
  bool in_line() const { return result_rows() == 1; }

  bool fits() const { return most(w.stride[0], w.stride[1]) <= kMostPhases; }

  void find_phases(int axis) {
    for (i64 phase = 0; phase < w.stride[axis]; ++phase) rank[axis][phase] = -1;
    for (i64 tap = 0; tap < w.kernel[axis]; ++tap) rank[axis][tap * w.dilation[axis] % w.stride[axis]] = 0;
    phases[axis] = 0;
    for (i64 phase = 0; phase < w.stride[axis]; ++phase)
      if (rank[axis][phase] == 0) rank[axis][phase] = phases[axis]++;
  }

  /* Zeros at the end of a row may be those at the beginning of the next. */
  i64 row_size(i64 places) const {
    const i64 all = places + reach(1) / w.stride[1];
    if (in_line()) return all;
    i64 needed = places;
    for (i64 phase = 0; phase < w.stride[1]; ++phase) {
      if (rank[1][phase] < 0) continue;
      const i64 begin = phase < w.padding[1] ? ceil_div(w.padding[1] - phase, w.stride[1]) : 0;
      const i64 end = ceil_div(w.sizes[1] + w.padding[1] - phase, w.stride[1]);
      needed = most(needed, most(end, all - begin));
    }
    return least(all, needed);
  }

  i64 rows_of(i64 result) const { return result + reach(0) / w.stride[0]; }

  /* So many rows of the result, or places where it is one row, that their copy stays in the cache; fewer where there
   * are too few strips for all threads. */
  void choose_strip(i64 products) {
    const i64 per_row = layers * planes * (in_line() ? 1 : wide), over = in_line() ? reach(1) : reach(0);
    const i64 fitting = kStripBytes / static_cast<i64>(sizeof(Term)) / per_row - over;
    const i64 extent = in_line() ? w.columns : result_rows();
    const i64 wanted = threads_here() > 1 ? ceil_div(threads_here() * kPiecesPerThread, products) : 1;
    const i64 work = products * g.m * g.n * terms;
    i64 count = ceil_div(extent, fitting < 1 ? 1 : fitting);
    count = most(count, least(least(wanted, ceil_div(work, products * kPiece)), extent / (2 * over + 2)));
    strip = ceil_div(extent, count);
    strips = ceil_div(extent, strip);
    if (in_line()) {
      across = strip, strip = 1;
      wide = row_size(across);
    }
    row_blocks = 1;
    if (strips < wanted) row_blocks = most(1, least(ceil_div(wanted, strips), g.m / kRowsPerPiece));
  }

  void choose_tile() {
    const i64 vectors = ceil_div((strip - 1) * wide + across, kWidth);
    tile_vectors = ceil_div(vectors, ceil_div(vectors, kTileVectors));
    if (g.tile_vectors > 0) tile_vectors = least(g.tile_vectors, tile_vectors);
    while (tile_vectors > 2 && g.m > most_rows(tile_vectors) && g.m <= most_rows(tile_vectors - 1)) --tile_vectors;
    const i64 groups = ceil_div(g.m, most_rows(tile_vectors));
    tile_rows = ceil_div(g.m, groups);
    panel = tile_vectors * kWidth;
    rows_per_block = ceil_div(groups, row_blocks) * tile_rows;
    row_blocks = ceil_div(g.m, rows_per_block);
  }

  /* Whether elements are seen often or lie close, little is computed in vain, and the copy is not too large. */
  bool pays() const {
    if (!fits() || 8 * layers * kElements > 9 * channels) return false;
    const bool overlap = area() > w.stride[0] * w.stride[1] || w.stride[1] <= 2;
    return overlap && 2 * wide <= 3 * across && possible();
  }

  bool possible() const { return fits() && copy_size() * static_cast<i64>(sizeof(Term)) <= kStripBytesMost; }

  i64 copy_size() const { return layers * planes * plane + reach(1) + panel + kSlack<Term>; }
  i64 held_size() const { return g.c ? 0 : tile_rows * strip * across; }
  i64 a_scratch() const { return pack_a ? terms * tile_rows : 0; }
  i64 places_size() const { return held_by<Sum, i64>(terms + kAhead); }
  i64 scratch_size() const {
    return places_size() + copy_size() + tile_rows * panel + held_size() + a_scratch() + 2 * kSlack<Sum>;
  }

  /* -- kernels whose terms are of several channels ------------------------------------------- */
  /* Rows lie a cache line more apart than they are long, lest they fall on each other in the cache. */
  i64 woven_row() const { return ceil_div(terms, kWidth) * kWidth + kWidth; }
  i64 woven_size() const { return operands.groups(g.a_batch) * g.m * woven_row(); }

  bool keeps() const {
    return g.kept && operands.groups(g.a_batch) == 1 && lies_close(g.m, g.a_row, g.k, g.a_col) &&
           g.m * g.k * static_cast<i64>(sizeof(Element)) >= kKeptBytes;
  }

  /* Kernels [from, end) of those of all groups. */
  void make_parts(Term* to, i64 from, i64 end) const {
    for (i64 number = from; number < end; ++number) {
      const Element* const kernel = operands.a_of(number / g.m) + number % g.m * g.a_row;
      for (i64 layer = 0; layer < layers; ++layer) {
        const i64 others = least(kElements, channels - layer * kElements) - 1;
        Kind::copy_terms(kernel + layer * kElements * area() * g.a_col, others, area() * g.a_col, g.a_col, area(),
                         nullptr, to + number * woven_row() + layer * area());
      }
    }
  }

  /* -- a strip --------------------------------------------------------------------------------- */
  struct Strip {
    i64 index, row, rows;    /* product, and rows of it */
    i64 y, x, count, places; /* the first row and place of the result, rows, places of each */
    Term *copy, *a;
    Sum *edge, *held;
    i64* place;
  };

  void block(i64 number, Sum* scratch) const {
    Strip at;
    at.index = number / (row_blocks * strips);
    at.row = number % row_blocks * rows_per_block;
    at.rows = least(rows_per_block, g.m - at.row);
    const i64 which = number / row_blocks % strips;
    at.y = in_line() ? 0 : which * strip;
    at.x = in_line() ? which * across : 0;
    at.count = least(strip, result_rows() - at.y);
    at.places = least(across, w.columns - at.x);
    at.place = reinterpret_cast<i64*>(scratch);
    at.edge = scratch + ceil_div(places_size(), kSlack<Sum>) * kSlack<Sum>;
    at.held = at.edge + tile_rows * panel;
    at.copy = reinterpret_cast<Term*>(at.held + held_size());
    at.a = at.copy + copy_size();
    find_places(at.place);
    copy_image(at);
    for (i64 i = 0; i < at.rows; i += tile_rows) group(at, i, least(tile_rows, at.rows - i));
  }

  void find_places(i64* place) const {
    for (i64 tap = 0; tap < area(); ++tap) {
      const i64 down = tap / w.kernel[1] * w.dilation[0], right = tap % w.kernel[1] * w.dilation[1];
      const i64 number = rank[0][down % w.stride[0]] * phases[1] + rank[1][right % w.stride[1]];
      const i64 first = number * plane + down / w.stride[0] * wide + right / w.stride[1];
      for (i64 layer = 0; layer < layers; ++layer) place[layer * area() + tap] = layer * planes * plane + first;
    }
    for (i64 p = terms; p < terms + kAhead; ++p) place[p] = place[terms - 1];
  }

  void copy_image(const Strip& at) const {
    const Element* const image = operands.b_of(at.index);
    const Element* const end = image_end(w, image, channels);
    Term* to = at.copy;
    for (i64 layer = 0; layer < layers; ++layer) {
      const i64 channel = layer * kElements, others = least(kElements, channels - channel) - 1;
      for (i64 down = 0; down < w.stride[0]; ++down) {
        if (rank[0][down] < 0) continue;
        for (i64 right = 0; right < w.stride[1]; ++right) {
          if (rank[1][right] < 0) continue;
          copy_phase(at, image + channel * w.channel, others, end, down, right, to);
          to += plane;
        }
      }
    }
    fill_zeros(to, reach(1) + panel);
  }

  /* Of one channel and `others` behind it. */
  void copy_phase(const Strip& at, const Element* image, i64 others, const Element* end, i64 down, i64 right,
                  Term* to) const {
    const i64 x = at.x * w.stride[1] + right - w.padding[1];
    const Inside inside(w, x, wide);
    const i64 step = w.stride[1] * w.step[1];
    for (i64 r = 0; r < rows_of(strip); ++r, to += wide) {
      const i64 y = (at.y + r) * w.stride[0] + down - w.padding[0];
      if (y < 0 || y >= w.sizes[0]) {
        fill_zeros(to, wide);
        continue;
      }
      if (inside.from > 0) fill_zeros(to, inside.from);
      Kind::copy_terms(image + y * w.step[0] + (x + inside.from * w.stride[1]) * w.step[1], others, w.channel, step,
                       inside.to - inside.from, end, to + inside.from);
      if (inside.to < wide) fill_zeros(to + inside.to, wide - inside.to);
    }
  }

  /* Rows of kernels, and the steps between rows and terms. */
  struct Kernels {
    const Term* from;
    i64 row, step;
  };

  Kernels kernels_of(const Strip& at, i64 i, i64 high) const {
    if constexpr (kElements > 1) {
      return {woven + (at.index % operands.groups(g.a_batch) * g.m + at.row + i) * woven_row(), woven_row(), 1};
    } else {
      const Term* const left = operands.a_of(at.index) + (at.row + i) * g.a_row;
      if (!pack_a) return {left, g.a_row, 1};
      pack_rows(left, g.a_row, g.a_col, high, terms, at.a);
      return {at.a, 1, high};
    }
  }

  /* Rows [i, i + high) of the block, all of the strip. */
  void group(const Strip& at, i64 i, i64 high) const {
    const Kernels left = kernels_of(at, i, high);
    const Ahead<Term> following = {left.from + high * left.row, i + high < at.rows && !pack_a ? high : 0};
    const i64 from = at.y * w.columns + at.x, count = at.count * at.places;
    Sum* const to = g.c ? operands.c_of(at.index) + (at.row + i) * g.c_row + from : at.held;
    const i64 to_row = g.c ? g.c_row : count;
    const i64 all = (at.count - 1) * wide + at.places;
    for (i64 t = 0; t < all; t += panel) {
      Kind::placed_tile(high, ceil_div(least(panel, all - t), kWidth), terms, left.from, left.row, left.step, at.copy + t,
                        at.place, at.edge, panel, t ? Ahead<Term>{at.copy, 0} : following);
      keep(at, t, least(panel, all - t), high, to, to_row);
    }
    if (g.done) g.done(g.context, to, to_row, at.index, at.row + i, high, from, count);
  }

  /* The places of a tile that are of the result. */
  void keep(const Strip& at, i64 t, i64 cols, i64 high, Sum* to, i64 to_row) const {
    for (i64 y = t / wide; y * wide < t + cols; ++y) {
      const i64 first = most(t, y * wide), last = least(t + cols, y * wide + at.places);
      if (first >= last) continue;
      const Sum* const edge = at.edge + first - t;
      Sum* const row = to + y * at.places + first - y * wide;
      for (i64 r = 0; r < high; ++r) copy_run(edge + r * panel, last - first, row + r * to_row);
    }
  }
};

template <class Kind>
int run_shifted(const Shifts<Kind>& shifts, i64 products) {
  const i64 work = shifts.rows_per_block * shifts.strip * shifts.wide * shifts.terms;
  return run_blocks<typename Kind::Sum>(shifts, products * shifts.row_blocks * shifts.strips, ceil_div(kPiece, work));
}
