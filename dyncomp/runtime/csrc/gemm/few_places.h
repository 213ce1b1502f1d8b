/* Convolutions with few places, each of which sees much: such are gradients with respect to kernels, where the image is
 * one channel of all images, and the kernels are the cotangents. Included once per instruction set.
 *
 * Rows of C are the places of some products, columns are kernels; the kernels, packed into panels, are B. What a row of
 * the kernel sees is a run of terms. The image is copied once, with its border of zeros, into planes in which what a
 * step of the dilation reaches over lies apart ("phases"), so that each run lies somewhere in the copy, and the rows of
 * a tile are read there, each by a pointer of its own. */

/* Places at most, elements of a run at least. */
constexpr i64 kFewPlaces = 64, kRunLeast = 4;
/* Rows of a block, terms that it goes over at once, and bytes of the copy of what these see. */
constexpr i64 kRowsOfFew = 48, kTermsOfFew = 512, kCopyOfFew = 192 << 10;
/* Rows of all products from which on it pays to pack the kernels. */
constexpr i64 kFewFromRows = 24;

template <class T>
struct FewPlaces {
  using Kind = Single<T>;
  static constexpr i64 kWidth = Lanes<T>::kWidth;

  const Gemm& g;
  const Windows& w;
  Operands<Kind> operands;
  i64 products, places, channels, lines, run; /* lines: rows of a kernel */
  i64 rank[2][kMostPhases], phases[2];        /* those of the dilation's phases that are seen, and how many */
  i64 lines_at_once, channels_at_once;
  i64 wide, rows_of_plane, plane; /* of the copy */
  i64 products_at_once, rows, tile_rows, tile_vectors, panel, panels;
  const T* packed = nullptr;

  FewPlaces(const Gemm& gemm, i64 count) : g(gemm), w(*gemm.windows), operands{gemm}, products(count) {
    places = g.n, lines = w.kernel[0], run = w.kernel[1];
    if (!fits()) return;
    channels = g.k / (lines * run);
    find_phases(0, places / w.columns);
    find_phases(1, w.columns);
    choose_terms();
    wide = (w.columns - 1) * w.stride[1] / w.dilation[1] + run;
    rows_of_plane = (places / w.columns - 1) * w.stride[0] / w.dilation[0] + lines_at_once;
    plane = rows_of_plane * wide;
    choose_blocks();
  }

  bool fits() const {
    return places <= kFewPlaces && run >= kRunLeast && w.dilation[0] <= kMostPhases && w.dilation[1] <= kMostPhases;
  }

  /* Whether windows overlap, kernels fill most of a vector, and their packed copy is used often enough. */
  bool pays() const {
    return fits() && operands.groups(g.a_batch) == 1 && w.stride[1] < run * w.dilation[1] && 2 * g.m >= kWidth &&
           products * places >= kFewFromRows && copy_size() * static_cast<i64>(sizeof(T)) <= kStripBytesMost;
  }

  /* In order, as copies may write beyond their end. */
  void find_phases(int axis, i64 count) {
    for (i64 phase = 0; phase < w.dilation[axis]; ++phase) rank[axis][phase] = -1;
    for (i64 place = 0; place < count; ++place) rank[axis][place * w.stride[axis] % w.dilation[axis]] = 0;
    phases[axis] = 0;
    for (i64 phase = 0; phase < w.dilation[axis]; ++phase)
      if (rank[axis][phase] == 0) rank[axis][phase] = phases[axis]++;
  }

  /* Whole images, or some lines of one. */
  void choose_terms() {
    const i64 fitting = most(1, kTermsOfFew / run);
    lines_at_once = ceil_div(lines, ceil_div(lines, fitting));
    const i64 images = most(1, fitting / lines);
    channels_at_once = lines_at_once < lines ? 1 : ceil_div(channels, ceil_div(channels, images));
  }

  void choose_blocks() {
    const i64 vectors = ceil_div(g.m, kWidth);
    tile_vectors = ceil_div(vectors, ceil_div(vectors, kTileVectors));
    panel = tile_vectors * kWidth;
    panels = ceil_div(g.m, panel);
    const i64 fitting = kCopyOfFew / static_cast<i64>(sizeof(T)) / copy_of_product();
    products_at_once = least(products, most(1, least(ceil_div(kRowsOfFew, places), fitting)));
    products_at_once = ceil_div(products, ceil_div(products, products_at_once));
    rows = products_at_once * places;
    tile_rows = ceil_div(rows, ceil_div(rows, rows_of_runs(tile_vectors)));
  }

  i64 runs_at_once() const { return channels_at_once * lines_at_once; }
  i64 copy_of_product() const { return channels_at_once * phases[0] * phases[1] * plane; }
  i64 vectors(i64 number) const { return ceil_div(least(panel, g.m - number * panel), kWidth); }
  i64 packed_size() const { return g.k * ((panels - 1) * panel + vectors(panels - 1) * kWidth) + kAhead * panel; }

  void make_parts(T* to, i64 from, i64 end) const {
    const T* const kernels = operands.a_of(0);
    for (i64 j = from; j < end; ++j)
      Kind::pack(kernels + j * panel * g.a_row, g.a_col, g.a_row, g.k, least(panel, g.m - j * panel),
                 vectors(j) * kWidth, to + j * g.k * panel);
  }

  /* Elements of scratch: pointers, sums, a tile of them, the copy, and C where it has no memory. */
  i64 table_size() const { return held_by<T, const T*>(runs_at_once() * rows); }
  i64 sums_row() const { return panels * panel; }
  i64 copy_size() const { return products_at_once * copy_of_product() + kSlack<T>; }
  i64 held_size() const { return g.c ? 0 : g.m * places; }
  i64 scratch_size() const {
    return table_size() + (rows + tile_rows) * sums_row() + held_size() + copy_size() + 2 * kSlack<T>;
  }

  struct Work {
    i64 first, products, rows; /* of the block */
    const T** seen;            /* for each tile, run and row of it, where the run lies */
    T *sums, *edge, *held, *copy;
  };

  void block(i64 number, T* scratch) const {
    Work work;
    work.first = number * products_at_once;
    work.products = least(products_at_once, products - work.first);
    work.rows = work.products * places;
    work.seen = reinterpret_cast<const T**>(scratch);
    work.sums = scratch + ceil_div(table_size(), kSlack<T>) * kSlack<T>;
    work.edge = work.sums + rows * sums_row();
    work.held = work.edge + tile_rows * sums_row();
    work.copy = work.held + held_size();
    i64 found_channels = 0, found_lines = 0;
    for (i64 channel = 0; channel < channels; channel += channels_at_once)
      for (i64 line = 0; line < lines; line += lines_at_once) {
        const i64 images = least(channels_at_once, channels - channel), high = least(lines_at_once, lines - line);
        copy_images(work, channel, images, line, high);
        if (images != found_channels || high != found_lines) find_runs(work, images, high);
        found_channels = images, found_lines = high;
        add_terms(work, (channel * lines + line) * run, images * high);
      }
    keep(work);
  }

  /* Lines [line, line + high) of the kernels, and what they see of channels [channel, channel + images). */
  void copy_images(const Work& work, i64 channel, i64 images, i64 line, i64 high) const {
    const i64 needed = rows_of_plane - lines_at_once + high;
    for (i64 q = 0; q < work.products; ++q) {
      const T* const image = operands.b_of(work.first + q);
      const T* const end = image_end(w, image, channels);
      T* to = work.copy + q * copy_of_product();
      for (i64 c = 0; c < images; ++c, to += phases[0] * phases[1] * plane)
        for (i64 down = 0; down < w.dilation[0]; ++down)
          for (i64 right = 0; right < w.dilation[1] && rank[0][down] >= 0; ++right) {
            if (rank[1][right] < 0) continue;
            T* const from = to + (rank[0][down] * phases[1] + rank[1][right]) * plane;
            copy_phase(image + (channel + c) * w.channel, end, line * w.dilation[0] + down - w.padding[0],
                       right - w.padding[1], needed, from);
          }
    }
  }

  void copy_phase(const T* image, const T* end, i64 y, i64 x, i64 count, T* to) const {
    const i64 step = w.dilation[1];
    const i64 from = x < 0 ? least(wide, steps_over(-x, step)) : 0;
    const i64 last = most(from, x < w.sizes[1] ? least(wide, steps_over(w.sizes[1] - x, step)) : 0);
    for (i64 row = 0; row < count; ++row, y += w.dilation[0], to += wide) {
      if (y < 0 || y >= w.sizes[0]) {
        fill_zeros(to, wide);
        continue;
      }
      if (from > 0) fill_zeros(to, from);
      copy_steps(image + y * w.step[0] + (x + from * step) * w.step[1], step * w.step[1], last - from, end, to + from);
      if (last < wide) fill_zeros(to + last, wide - last);
    }
  }

  void find_runs(const Work& work, i64 images, i64 high) const {
    const i64 runs = images * high;
    for (i64 row = 0; row < work.rows; ++row) {
      const i64 start = row / tile_rows * tile_rows, tall = least(tile_rows, work.rows - start);
      const i64 y = row % places / w.columns * w.stride[0], x = row % w.columns * w.stride[1];
      const i64 phase = rank[0][y % w.dilation[0]] * phases[1] + rank[1][x % w.dilation[1]];
      const T* from = work.copy + row / places * copy_of_product() + phase * plane + y / w.dilation[0] * wide +
                      x / w.dilation[1];
      const T** at = work.seen + start * runs + (row - start);
      for (i64 c = 0; c < images; ++c, from += phases[0] * phases[1] * plane)
        for (i64 line = 0; line < high; ++line, at += tall) *at = from + line * wide;
    }
  }

  /* `runs` runs of terms from term p on. */
  void add_terms(const Work& work, i64 p, i64 runs) const {
    for (i64 j = 0; j < panels; ++j) {
      const T* const b = packed + j * g.k * panel + p * vectors(j) * kWidth;
      for (i64 row = 0; row < work.rows; row += tile_rows) {
        const i64 tall = least(tile_rows, work.rows - row);
        T* const to = work.sums + row * sums_row() + j * panel;
        T* const target = p > 0 ? work.edge : to;
        find_run_tile<Kind>(tall, vectors(j))(runs, run, work.seen + row * runs, b, target, sums_row());
        if (p == 0) continue;
        for (i64 r = 0; r < tall; ++r)
          for (i64 col = 0; col < vectors(j) * kWidth; ++col) to[r * sums_row() + col] += target[r * sums_row() + col];
      }
    }
  }

  /* The sums, turned: a row of C for each kernel. */
  void keep(const Work& work) const {
    for (i64 q = 0; q < work.products; ++q) {
      T* const to = g.c ? operands.c_of(work.first + q) : work.held;
      const i64 to_row = g.c ? g.c_row : places;
      const T* const from = work.sums + q * places * sums_row();
      for (i64 kernel = 0; kernel < g.m; ++kernel)
        for (i64 place = 0; place < places; ++place) to[kernel * to_row + place] = from[place * sums_row() + kernel];
      if (g.done) g.done(g.context, to, to_row, work.first + q, 0, g.m, 0, places);
    }
  }
};

template <class T>
int convolve_few_places(FewPlaces<T>& work) {
  Scratch<T> packed;
  if (!packed.reserve(work.packed_size())) return 1;
  make_copy(work, packed.data, work.panels, work.g.k * work.panel);
  work.packed = packed.data;
  const i64 blocks = ceil_div(work.products, work.products_at_once);
  return run_blocks<T>(work, blocks, ceil_div(kPiece, work.rows * work.sums_row() * work.g.k + 1));
}
