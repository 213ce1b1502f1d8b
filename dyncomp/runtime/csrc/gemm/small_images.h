/* Convolutions of stacks of small images: columns of the product are the places of all images, one after the other, as
 * those of one would fill few lanes. What they see is copied panel by panel (windows.h). Included once per instruction
 * set. */

/* Vectors that the places of an image fill at most, and kernels for which it pays to copy what they see. */
constexpr i64 kSmallVectors = 2, kSmallFromKernels = 16;

template <class T>
struct SmallImages {
  static constexpr i64 kWidth = Lanes<T>::kWidth;

  const Gemm& g;
  const Windows& w;
  Operands<Single<T>> operands;
  i64 products, places, columns, channels;
  i64 tile_rows, tile_vectors, panel, panels, terms, rows_per_block, row_blocks;

  SmallImages(const Gemm& gemm, i64 count)
      : g(gemm), w(*gemm.windows), operands{gemm}, products(count), places(gemm.n), columns(count * gemm.n) {
    channels = g.k / (w.kernel[0] * w.kernel[1]);
    const i64 vectors = ceil_div(columns, kWidth);
    tile_vectors = ceil_div(vectors, ceil_div(vectors, kTileVectors));
    panel = tile_vectors * kWidth;
    panels = ceil_div(columns, panel);
    tile_rows = ceil_div(g.m, ceil_div(g.m, most_rows(tile_vectors)));
    terms = ceil_div(g.k, ceil_div(g.k, kTerms));
    const i64 wanted = threads_here() > 1 ? ceil_div(threads_here() * kPiecesPerThread, panels) : 1;
    const i64 groups = ceil_div(g.m, tile_rows);
    row_blocks = most(1, least(wanted, g.m / kRowsPerPiece));
    rows_per_block = ceil_div(groups, row_blocks) * tile_rows;
    row_blocks = ceil_div(g.m, rows_per_block);
  }

  bool pays() const {
    return products > 1 && ceil_div(places, kWidth) <= kSmallVectors && g.m >= kSmallFromKernels && g.a_col == 1 &&
           operands.groups(g.a_batch) == 1;
  }

  i64 copy_size() const { return ceil_div(terms * panel, kWidth) * kWidth + kSlack<T>; }
  i64 scratch_size() const { return copy_size() + rows_per_block * panel; }

  void block(i64 number, T* scratch) const {
    const i64 row = number % row_blocks * rows_per_block, rows = least(rows_per_block, g.m - row);
    const i64 col = number / row_blocks * panel, cols = least(panel, columns - col);
    const i64 vectors = ceil_div(cols, kWidth), width = vectors * kWidth;
    T* const sums = scratch + copy_size();
    for (i64 p = 0; p < g.k; p += terms) {
      const i64 count = least(terms, g.k - p);
      pack_windows(w, *this, channels, p, count, col, cols, width, scratch, places);
      const T* const kernels = static_cast<const T*>(g.a) + row * g.a_row + p;
      for (i64 r = 0; r < rows; r += tile_rows) {
        const i64 high = least(tile_rows, rows - r);
        const Ahead<T> next = {kernels + most(0, least(r + tile_rows, rows - 1)) * g.a_row, 1};
        find_tile<T>(high, vectors)(count, kernels + r * g.a_row, g.a_row, 1, scratch, width, nullptr,
                                    sums + r * panel, panel, p ? Into::kAdd : Into::kNothing, next);
      }
    }
    for (i64 from = col; from < col + cols;) {
      const i64 image = from / places, place = from % places, count = least(places - place, col + cols - from);
      keep(image, row, rows, place, count, sums + from - col);
      from += count;
    }
  }

  /* Some places of an image. */
  void keep(i64 image, i64 row, i64 rows, i64 place, i64 count, T* sums) const {
    T* to = sums;
    i64 to_row = panel;
    if (g.c) {
      to_row = g.c_row;
      to = operands.c_of(image) + row * to_row + place;
      for (i64 r = 0; r < rows; ++r) copy_run(sums + r * panel, count, to + r * to_row);
    }
    if (g.done) g.done(g.context, to, to_row, image, row, rows, place, count);
  }

  /* For pack_windows: where an image lies. */
  const T* operator()(i64 image) const { return operands.b_of(image); }
};

template <class T>
int convolve_small_images(const SmallImages<T>& work) {
  return run_blocks<T>(work, work.panels * work.row_blocks,
                       ceil_div(kPiece, work.rows_per_block * work.panel * work.g.k + 1));
}
