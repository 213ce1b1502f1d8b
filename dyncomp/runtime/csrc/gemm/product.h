/* The loops around the register tiles (the walk over blocks: blocking.h). Included once per instruction set. */

/* From this many rows on, what a block needs of B is copied into panels first. Below, it is read where it lies:
 * all columns of a block for some terms, then for the next, since memory is read fastest along its rows. */
constexpr i64 kPackFromRows = 144;
/* The same for a B whose vectors lie across cache lines. */
constexpr i64 kPackCrossingFromRows = 96;
constexpr i64 kPanelsInPlace = 4;
/* Rows for which a block is one panel of B, of so many bytes at most. */
constexpr i64 kByPanelFrom = 24, kByPanelTo = 512;
constexpr i64 kPanelBytes = 768 << 10;
/* Bytes of B from which on a copy of it is kept where it would be read in place and vectors lie within cache lines. */
constexpr i64 kKeptBytesInPlace = 4 << 20;
/* The same where vectors lie across cache lines: to ask whether a copy still holds takes some microseconds. */
constexpr i64 kKeptBytesCrossing = 512 << 10;
/* Bytes of a copy from which on its next block is asked for ahead. */
constexpr i64 kAheadBytes = 1 << 20;
/* Vectors of a tall tile, rows of the result for which there are any, columns and terms from which on. */
constexpr i64 kTallVectors = kTileRowsMost >= 12 ? 2 : kTileVectors;
constexpr i64 kTallFromRows = 48, kTallToRows = 768, kTallFrom = 256;
/* Terms of B that are made at once where its columns are contiguous and turned then. */
constexpr i64 kFilledTerms = 64;
/* Rows from which on half of a symmetric product is copied. */
constexpr i64 kSymmetricFrom = 64;
/* Groups of rows of A that are copied at once: of whole cache lines. */
constexpr i64 kGroups = 8;
/* Whether there are tiles whose last vector is half of one. */
constexpr bool kHalfTiles = kVectorBytes == 64;

template <class T>
struct PlainTypes {
  using Left = T;
  using Element = T;
  using Packed = T;
  using Sum = T;
  static constexpr i64 kWork = kPiece;
};

template <class T>
struct Product : Blocking<Product<T>, PlainTypes<T>> {
  static constexpr i64 kSize = sizeof(T);
  using Walk = Blocking<Product<T>, PlainTypes<T>>;
  using typename Walk::Block;
  using Walk::g, Walk::packed, Walk::by_dots, Walk::terms;
  using Walk::tile_rows, Walk::tile_vectors, Walk::panel, Walk::panels;
  using Walk::rows_per_block, Walk::row_blocks, Walk::panels_per_block, Walk::column_blocks;
  using Walk::columns, Walk::vectors, Walk::width, Walk::packed_size;
  using Walk::a_of, Walk::b_of, Walk::c_at, Walk::finished;

  i64 all; /* terms, with those left out */
  i64 chunk; /* terms summed before C is added to: blocks of fewer go on from the sums that are in C */
  bool pack_a, pack_b, by_panel;
  bool adds; /* the sums are added to what is in C */
  bool symmetric; /* B is A turned: what lies right of the diagonal is copied from what lies below it */
  i64 usual_panels; /* of a block; 0: as many as fit */
  Tile<T> whole; /* of all rows and vectors */
  i64 tail; /* last rows of B whose vectors would reach beyond the last panel and the end of B */

  /* `all_terms`: of a product of which this one leaves out the last terms, since they are zeros: the bits are its. */
  explicit Product(const Gemm& gemm, i64 products, i64 all_terms = 0, bool onto = false)
      : Walk(gemm, gemm.k), all(most(all_terms, gemm.k)), adds(onto) {
    choose_tile();
    by_dots = goes_by_dots();
    pack_a = !g.fill_a && g.a_col != 1 && g.m > 1;
    choose_terms();
    choose_blocks(products);
    find_tail();
    symmetric = is_symmetric();
  }

  /* Columns and rows are shared out evenly among tiles that fill the registers. */
  void choose_tile() {
    const i64 wide = ceil_div(g.n, Lanes<T>::kWidth);
    const i64 widest = goes_by_tall_tiles(wide) ? kTallVectors : kTileVectors;
    i64 vectors = ceil_div(wide, ceil_div(wide, widest));
    while (vectors > 2 && g.m > most_rows(vectors) && g.m <= most_rows(vectors - 1)) --vectors;
    this->choose_tiles(vectors);
    whole = find_tile<T>(tile_rows, tile_vectors);
  }

  /* Whether tiles have more rows and fewer columns: where B is long and read from the second-level cache for not so
   * many rows, half as much of it for each multiplication makes up for more reading of A. Not where multiplications
   * take twice as long as they might: their rows crowd each other out of the cache (12 rows 4 KiB apart: 0.9x). */
  bool goes_by_tall_tiles(i64 wide) const {
    if (kTallVectors == kTileVectors || gemm_halves_vectors() || g.windows || (g.a_col != 1 && !g.fill_a)) return false;
    return g.m >= kTallFromRows && g.m <= kTallToRows && g.n >= kTallFrom && all >= kTallFrom &&
           wide % kTallVectors == 0;
  }

  /* Where B is made: only of as many rows as its columns meet at once. */
  bool goes_by_dots() const {
    if (adds || g.windows || g.fill_a || g.m >= kDotRowsMost) return false;
    if (g.a_col != 1 || g.b_row != 1 || g.b_col == 1) return false;
    return !g.fill_b || (g.m <= kDotRows && g.k <= kDotTermsMost);
  }

  /* What the bits depend on, then what was measured. */
  void choose_terms() {
    terms = all > 0 ? ceil_div(all, ceil_div(all, kTerms)) : 1;
    pack_b = !by_dots && (g.windows || g.fill_b || g.m >= kPackFromRows || (g.b_col != 1 && g.n > 1));
    if (!by_dots && crosses_lines() && g.m >= kPackCrossingFromRows) pack_b = true; /* the bits are the same */
    by_panel = goes_by_panel();
    usual_panels = by_panel ? 1 : pack_b ? 0 : kPanelsInPlace;
    chunk = by_panel ? all : terms;
    if (by_panel) terms = all;
    if (by_dots) return;
    if (g.tile_vectors > 0 && g.tile_vectors <= kTileVectors) {
      this->choose_tiles(g.tile_vectors);
      whole = find_tile<T>(tile_rows, tile_vectors);
    }
    if (g.block_terms > 0 && chunk >= all && !adds) terms = least(terms, g.block_terms);
  }

  void choose_blocks(i64 products) {
    const i64 fitting = most(1, kBlockBytes / kSize / terms / panel);
    this->cut(products, usual_panels > 0 ? usual_panels : fitting);
  }

  /* What the sums of terms from p on do with what is in C. */
  Into into(i64 p) const {
    if (p == 0) return adds ? Into::kAdd : Into::kNothing;
    return terms < chunk ? Into::kGoOn : Into::kAdd;
  }

  /* All rows meet one panel of B, which stays in the first-level cache, then the next. */
  void panel_by_panel() {
    if (by_dots) return;
    panels_per_block = 1;
    column_blocks = panels;
    rows_per_block = ceil_div(g.m, tile_rows) * tile_rows;
    row_blocks = 1;
  }

  bool crosses_lines() const {
    return reinterpret_cast<size_t>(g.b) % kVectorBytes != 0 || (g.k > 1 && g.b_row * kSize % kVectorBytes != 0);
  }

  /* Whether a block is one panel of B, whose columns lie contiguous, and the next one is fetched meanwhile: few
   * rows make little of a panel, so that waiting for memory would take long. */
  bool goes_by_panel() const {
    return pack_b && !pack_a && !g.windows && !g.fill_a && !g.fill_b && g.b_row == 1 && g.m >= kByPanelFrom &&
           g.m <= kByPanelTo && all <= kPanelBytes / kSize / panel;
  }

  /* Rows of a block that one row of tiles makes; the block's are shared out evenly among them. */
  struct Group {
    i64 number, row, high;
  };

  /* Each element is a sum of the same products in the same order as that across the diagonal: the bits are equal. */
  bool is_symmetric() const {
    if (g.a != g.b || g.windows || g.done || !g.c || g.m != g.n || g.m < kSymmetricFrom) return false;
    if (g.fill_a || g.fill_b) return false;
    if (g.a_row != g.b_col || g.a_col != g.b_row) return false;
    for (int axis = 0; axis < g.axes; ++axis)
      if (g.a_batch[axis] != g.b_batch[axis]) return false;
    return true;
  }

  /* The panels that rows up to `row` need. */
  i64 needed(const Block& at, i64 row) const {
    return symmetric ? least(at.end, ceil_div(row, panel)) : at.end;
  }

  /* Whether a copy of B may be kept: the terms are summed as they would be without it. */
  bool keeps() const {
    return !g.windows && this->may_keep(pack_b ? kKeptBytes : crosses_lines() ? kKeptBytesCrossing : kKeptBytesInPlace);
  }

  void pack_panels(T* to, i64 from, i64 end) const {
    for (i64 j = from; j < end; ++j)
      if (g.fill_b)
        fill_panel(0, j, 0, g.k, to + j * g.k * panel);
      else
        pack_panel(b_of(0) + j * panel * g.b_col, g.b_row, g.b_col, g.k, columns(j), width(j), to + j * g.k * panel);
  }

  /* `count` rows of a panel from row p on, made of what they are made of. */
  void fill_panel(i64 index, i64 j, i64 p, i64 count, T* to) const {
    const Filling& filling = *g.fill_b;
    const i64 from = j * panel, cols = columns(j), wide = width(j);
    if (g.b_row != 1 || g.b_col == 1) {
      filling.fill(filling.context, to, wide, index, p, count, from, cols);
      for (i64 q = 0; q < count && cols < wide; ++q)
        for (i64 c = cols; c < wide; ++c) to[q * wide + c] = 0;
      return;
    }
    T turned[kTileVectors * Lanes<T>::kWidth * kFilledTerms] __attribute__((aligned(64)));
    for (i64 q = 0; q < count; q += kFilledTerms) {
      const i64 terms_now = least(kFilledTerms, count - q);
      filling.fill(filling.context, turned, kFilledTerms, index, from, cols, p + q, terms_now);
      pack_turned(turned, kFilledTerms, terms_now, cols, wide, to + q * wide);
    }
  }

  /* Elements of scratch: copies of B (all panels of a block, or the last that is not whole), and of some rows of A. */
  i64 b_scratch() const {
    if (by_dots || packed) return 0;
    return pack_b ? terms * panel * panels_per_block + (g.windows ? kSlack<T> : 0) : least(terms, tail) * panel;
  }
  i64 a_scratch() const {
    if (by_dots) return this->dot_scratch();
    return g.fill_a ? filled_row() * tile_rows : pack_a ? terms * tile_rows * kGroups : 0;
  }
  i64 filled_row() const { return ceil_div(terms, kFilledGap) * kFilledGap + kFilledGap; }

  static Dots<T> find_dots_of(i64 rows, i64 cols) { return find_dots<T>(rows, cols); }

  /* Where B is read in place, vectors may reach into the next row, what they find there being dropped, but for the
   * last rows of all: these are copied. */
  void find_tail() {
    const i64 beyond = reach(panels - 1) - columns(panels - 1);
    tail = beyond == 0 ? 0 : g.b_row > 0 ? least(g.k, ceil_div(beyond, g.b_row)) : g.k;
  }

  /* Whether the last vector of a panel needs to be no more than half of one. */
  bool halved(i64 number) const {
    const i64 most_columns = width(number) - Lanes<T>::kWidth / 2;
    return kHalfTiles && vectors(number) > 1 && columns(number) <= most_columns && gemm_halves_vectors();
  }

  /* Columns that the vectors of a panel reach over, and whether these go beyond it. */
  i64 reach(i64 number) const { return width(number) - (halved(number) ? Lanes<T>::kWidth / 2 : 0); }
  bool partial(i64 number) const { return columns(number) < reach(number); }

  /* Rows of a panel, of `count` from row p on, that are read where they lie; the others are read from a copy. */
  i64 in_place(i64 number, i64 p, i64 count) const {
    if (pack_b || packed) return 0;
    return partial(number) ? most(0, least(count, g.k - tail - p)) : count;
  }

  T* copy_of(const Block& at, i64 number) const {
    return at.b + (pack_b ? (number - at.panel) * terms * panel : 0);
  }

  /* The rows of a panel from row p on, where they are not read from B. */
  const T* copied(const Block& at, i64 number, i64 p) const {
    return packed ? packed + number * g.k * panel + p * width(number) : copy_of(at, number);
  }

  void copy_panel(const Block& at, i64 j, const T* b, i64 p, i64 count) const {
    if (g.fill_b)
      fill_panel(at.index, j, p, count, copy_of(at, j));
    else if (g.windows)
      pack_windows(*g.windows, b_of(at.index), ceil_div(g.k, g.windows->kernel[0] * g.windows->kernel[1]), p, count,
                   j * panel, columns(j), width(j), copy_of(at, j));
    else
      pack_panel(b + j * panel * g.b_col, g.b_row, g.b_col, count, columns(j), width(j), copy_of(at, j));
  }

  /* What a block needs of B and does not read where it lies. */
  void copy_block(const Block& at, i64 p, i64 count, const T* b) const {
    const i64 end = needed(at, at.row + at.rows);
    i64 j = at.panel;
    if (pack_b && g.b_col == 1 && !g.fill_b && !g.windows) {
      const bool whole = end < panels || columns(panels - 1) == panel;
      const i64 beside = most(0, end - j - !whole);
      pack_beside(b + j * panel, g.b_row, count, beside, panel, terms * panel, at.b);
      j += beside;
    }
    for (; j < end; ++j) {
      const i64 lying = in_place(j, p, count);
      if (lying < count) copy_panel(at, j, b + lying * g.b_row, p + lying, count - lying);
    }
  }

  void terms_of_block(const Block& at, i64 p, i64 count) const {
    const T* const b = b_of(at.index) + p * g.b_row;
    if (!packed) copy_block(at, p, count, b);
    const T* const a = a_of(at.index) + at.row * g.a_row + p * g.a_col;
    const i64 groups = at.rows <= tile_rows ? 1 : ceil_div(at.rows, tile_rows);
    const i64 least_high = at.rows / groups, taller = at.rows % groups;
    Group now = {0, 0, 0};
    for (; now.number < groups; ++now.number, now.row += now.high) {
      now.high = least_high + (now.number < taller);
      const T* left = a + now.row * g.a_row;
      if (g.fill_a) left = filled_rows(at, now, p, count);
      if (pack_a) left = packed_rows(at, now, taller ? taller : groups, count, left);
      i64 j = at.panel;
      const i64 end = needed(at, at.row + now.row + now.high);
      if (!pack_b && !packed) j = plain_tiles(at, now, end, p, count, left, b);
      for (; j < end; ++j) tile_of_block(at, now, j, p, count, left, b + j * panel);
      if (p + count == g.k) finished(at, now.row, now.high);
    }
  }

  /* The tiles of a group that are of whole width and read B where it lies; the first panel that is left. */
  i64 plain_tiles(const Block& at, const Group& now, i64 end, i64 p, i64 count, const T* left, const T* b) const {
    const i64 a_row = g.fill_a ? filled_row() : pack_a ? 1 : g.a_row;
    const i64 a_col = g.fill_a ? 1 : pack_a ? now.high : g.a_col;
    const Tile<T> run = now.high == tile_rows ? whole : find_tile<T>(now.high, tile_vectors);
    const Into onto = into(p);
    const bool whole_end = end < panels || columns(panels - 1) == panel;
    T* to = c_at(at, now.row);
    i64 j = at.panel;
    for (; j < end - !whole_end; ++j, to += panel)
      run(count, left, a_row, a_col, b + j * panel, g.b_row, nullptr, to, at.c_row, onto, {at.b, 0});
    return j;
  }

  /* A group of rows of A, made of what they are made of. */
  const T* filled_rows(const Block& at, const Group& now, i64 p, i64 count) const {
    const Filling& filling = *g.fill_a;
    filling.fill(filling.context, at.a, filled_row(), at.index, at.row + now.row, now.high, p, count);
    return at.a;
  }

  /* A copy of a group of rows; made of several groups at once where these lie side by side. The first `tall` groups are
   * the taller ones. */
  const T* packed_rows(const Block& at, const Group& now, i64 tall, i64 count, const T* left) const {
    const i64 place = now.number % kGroups;
    if (g.a_row != 1 || now.high != kFullRows || now.number >= tall) {
      pack_rows(left, g.a_row, g.a_col, now.high, count, at.a);
      return at.a;
    }
    if (place == 0) pack_groups(left, g.a_col, least(kGroups, tall - now.number) * kFullRows, count, at.a);
    return at.a + place * count * kFullRows;
  }

  /* Lines of memory that come next, one for each term of a tile: of the next block's panel (so many of its columns as
   * a line has elements), of a copy that is too large to stay in the cache, or of the next rows of A. */
  Ahead<T> ahead(const Block& at, const Group& now, i64 j, i64 p, i64 count) const {
    constexpr i64 kLine = 64 / kSize;
    if (packed && packed_size() * kSize > kAheadBytes) return packed_ahead(at, now, j, p, count);
    if (!by_panel || packed) return pack_b ? rows_ahead(at, now, j, p, count) : Ahead<T>{at.b, 0};
    const i64 line = now.number * kLine, column = at.end * panel + line;
    if (line >= panel || column >= g.n) return {at.b, 0};
    return {b_of(at.index) + column * g.b_col, kLine};
  }

  /* The tiles of a group of rows ask for the next group, each for some whole rows. */
  Ahead<T> rows_ahead(const Block& at, const Group& now, i64 j, i64 p, i64 count) const {
    if (g.fill_a || g.a_col != 1) return {at.b, 0};
    const i64 after = now.row + now.high, high = least(now.high, at.rows - after);
    const i64 each = ceil_div(most(high, 0), at.end - at.panel), row = (j - at.panel) * each;
    const i64 run = row < high ? count / least(each, high - row) : 0; /* terms for a row */
    if (run == 0) return {at.b, 0};
    const i64 step = ceil_div(count, run);
    return {a_of(at.index) + (at.row + after + row) * g.a_row + p, step, run, g.a_row - run * step};
  }

  /* The tiles of a block ask for the next one's panels in turn, then for rows. */
  Ahead<T> packed_ahead(const Block& at, const Group& now, i64 j, i64 p, i64 count) const {
    constexpr i64 kLine = 64 / kSize;
    const bool last = p + count >= g.k; /* terms; then come other columns */
    const i64 wide = at.end - at.panel, tiles = ceil_div(panel, kLine); /* that ask for one panel */
    const i64 number = now.number * wide + j - at.panel;
    const i64 which = (last ? at.end : at.panel) + number / tiles;
    if (number >= wide * tiles || which >= panels) return rows_ahead(at, now, j, p, count);
    const i64 row = last ? 0 : p + count;
    return {packed + which * g.k * panel + row * width(which) + number % tiles * count * kLine, kLine};
  }

  void tile_of_block(const Block& at, const Group& now, i64 j, i64 p, i64 count, const T* a, const T* b) const {
    const i64 high = now.high;
    const i64 a_row = g.fill_a ? filled_row() : pack_a ? 1 : g.a_row;
    const i64 a_col = g.fill_a ? 1 : pack_a ? high : g.a_col;
    const Tile<T> run = find_run(high, j);
    const Ahead<T> next = ahead(at, now, j, p, count);
    const i64 lying = in_place(j, p, count);
    const bool beside = partial(j) && (g.c || p > 0);
    T* const held = c_at(at, now.row) + (j - at.panel) * panel;
    T* const to = beside ? at.edge : held;
    const i64 to_row = beside ? panel : at.c_row;
    const Into onto = beside && into(p) == Into::kAdd ? Into::kNothing : into(p);
    if (beside && onto == Into::kGoOn) copy_block_rows(held, at.c_row, high, columns(j), at.edge, panel);
    if (lying > 0) run(lying, a, a_row, a_col, b, g.b_row, nullptr, to, to_row, onto, next);
    if (lying < count || count == 0)
      run(count - lying, a + lying * a_col, a_row, a_col, copied(at, j, p), width(j), nullptr, to, to_row,
          lying > 0 ? Into::kGoOn : onto, next);
    if (beside) copy_edge(at.edge, high, columns(j), held, at.c_row, into(p) == Into::kAdd);
  }

  /* The kernel for a tile of some rows and a panel. */
  Tile<T> find_run(i64 rows, i64 number) const {
    if (rows == tile_rows && number + 1 < panels) return whole;
    if constexpr (kHalfTiles)
      if (halved(number)) return find_tile<T, Even<T>, true>(rows, vectors(number));
    return find_tile<T>(rows, vectors(number));
  }

  static void copy_block_rows(const T* from, i64 from_row, i64 rows, i64 cols, T* to, i64 to_row) {
    for (i64 i = 0; i < rows; ++i) copy_row(from + i * from_row, cols, to + i * to_row);
  }

  /* A tile that reaches over the last column was computed beside C. */
  void copy_edge(const T* edge, i64 rows, i64 cols, T* c, i64 c_row, bool add) const {
    if (!add) return copy_block_rows(edge, panel, rows, cols, c, c_row);
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < cols; ++j) c[i * c_row + j] += edge[i * panel + j];
  }
};
