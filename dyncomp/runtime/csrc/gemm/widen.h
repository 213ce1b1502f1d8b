/* Products of operands that are widened to float32 as they are packed: both, of bfloat16, where the processor has no
 * instruction for them; a right one of bytes. Included once per instruction set. */

/* Elements that are made at once where an operand is made of something else. */
constexpr i64 kWidenedAtOnce = 256;

/* An operand as one that is made (`Filling` in abi.h). */
struct Widened {
  const Gemm* g;
  const void* from;
  i64 row, col; /* strides; where `turned`, "rows" of what is made are columns */
  const i64* batch;
  const Filling* made;
  bool turned;
  Filling filling;
};

using Brain16 = unsigned short;

template <class From>
void widen_row(const From* from, i64 step, i64 count, float* to) {
  for (i64 j = 0; j < count; ++j) {
    if constexpr (sizeof(From) == sizeof(Brain16)) {
      const unsigned bits = static_cast<unsigned>(from[j * step]) << 16;
      __builtin_memcpy(to + j, &bits, sizeof(bits));
    } else {
      to[j] = from[j * step];
    }
  }
}

template <class From>
void widen_block(void* raw, const void* out, i64 to_row, i64 product, i64 row, i64 rows, i64 col, i64 cols) {
  const Widened& of = *static_cast<const Widened*>(raw);
  float* to = static_cast<float*>(const_cast<void*>(out));
  if (of.made) {
    From some[kWidenedAtOnce];
    for (i64 r = 0; r < rows; ++r, to += to_row)
      for (i64 c = 0; c < cols; c += kWidenedAtOnce) {
        const i64 count = least(kWidenedAtOnce, cols - c);
        of.made->fill(of.made->context, some, kWidenedAtOnce, product, row + r, 1, col + c, count);
        widen_row(some, 1, count, to + c);
      }
    return;
  }
  const From* const from = static_cast<const From*>(of.from) + batch_offset(*of.g, product, of.batch);
  const i64 down = of.turned ? of.col : of.row, along = of.turned ? of.row : of.col;
  for (i64 r = 0; r < rows; ++r) {
    const From* const now = from + (row + r) * down + col * along;
    if (along == 1)
      widen_row(now, 1, cols, to + r * to_row);
    else
      widen_row(now, along, cols, to + r * to_row);
  }
}

/* The elements of an operand, from the first in memory on to behind the last, relative to where it begins. */
struct Extent {
  i64 first = 0, end = 1;

  void add(i64 count, i64 stride) { (stride < 0 ? first : end) += (count - 1) * stride; }
};

struct Widening {
  const unsigned short* from;
  float* to;
};

void widening_range(void* raw, i64 lo, i64 hi, int) {
  const Widening& widening = *static_cast<const Widening*>(raw);
  widen_row(widening.from + lo, 1, hi - lo, widening.to + lo);
}

/* An operand of float32 in place of one of bfloat16; NULL if there was no memory. */
const float* widen_operand(const void* from, const Extent& extent, Scratch<float>& memory) {
  if (!memory.reserve(extent.end - extent.first)) return nullptr;
  Widening widening = {static_cast<const unsigned short*>(from) + extent.first, memory.data};
  parallel_for(widening_range, &widening, extent.end - extent.first, kPiece);
  return memory.data - extent.first;
}

/* Convolutions widen both operands as wholes. */
int convolve_widened(const Gemm* gemm) {
  Gemm g = *gemm;
  if (g.m == 0 || g.n == 0) return 0;
  const Windows& w = *g.windows;
  const bool last = w.channels_last;
  const i64 channels = w.depthwise ? (last ? g.n : g.m) : g.k / (w.kernel[0] * w.kernel[1]);
  Extent images, kernels;
  images.add(channels, last ? 1 : w.channel);
  for (int axis = 0; axis < 2; ++axis) images.add(w.sizes[axis], w.step[axis]);
  kernels.add(last ? g.k : g.m, last ? g.b_row : g.a_row);
  kernels.add(last ? g.n : g.k, last ? g.b_col : g.a_col);
  for (int axis = 0; axis < g.axes; ++axis) {
    if (g.batch[axis] == 0) return 0;
    images.add(g.batch[axis], (last ? g.a_batch : g.b_batch)[axis]);
    kernels.add(g.batch[axis], (last ? g.b_batch : g.a_batch)[axis]);
  }
  Scratch<float> left, right;
  g.a = widen_operand(g.a, last ? images : kernels, left);
  g.b = widen_operand(g.b, last ? kernels : images, right);
  g.kept = 0;
  return g.a && g.b ? multiply<float>(&g) : 1;
}

/* The right operand of `g` as one that is made of elements of so many bytes; `number`: of the kind of these. */
template <class From>
void widen_right(Gemm& g, Widened& right, i64 number) {
  right.filling.fill = widen_block<From>;
  if (g.fill_b) {
    right.filling = *g.fill_b;
    right.filling.fill = widen_block<From>;
    right.filling.tag ^= 1ll << 60; /* not what is made where it is read as it is */
  } else {
    g.kept = g.kept && g.k > 0 && is_one_matrix(g) && lies_close(g.k, g.b_row, g.n, g.b_col);
    right.filling.bytes = static_cast<i64>(sizeof(From)) * extent_of(g.k, g.b_row, g.n, g.b_col);
    const i64 parts[] = {g.k, g.n, g.b_row, g.b_col, number};
    size_t tag = 1ull << 61;
    for (const i64 part : parts) tag = (tag ^ static_cast<size_t>(part)) * 0x9E3779B97F4A7C15u;
    right.filling.tag = static_cast<i64>(tag | 1);
  }
  right.filling.context = &right;
  g.fill_b = &right.filling;
}

/* An operand of `gemm` as one that is yet to be made. */
Widened widened_left(const Gemm* g) { return {g, g->a, g->a_row, g->a_col, g->a_batch, g->fill_a, false, {}}; }
Widened widened_right(const Gemm* g) {
  return {g, g->b, g->b_row, g->b_col, g->b_batch, g->fill_b, g->b_row == 1 && g->b_col != 1, {}};
}

int multiply_widened(const Gemm* gemm) {
  if (gemm->windows) return convolve_widened(gemm);
  Gemm g = *gemm;
  Widened left = widened_left(gemm), right = widened_right(gemm);
  left.filling.fill = widen_block<Brain16>;
  left.filling.context = &left;
  g.fill_a = &left.filling;
  widen_right<Brain16>(g, right, 0);
  return multiply<float>(&g);
}

/* -- float32 by bytes ------------------------------------------------------------------------- */
template <class Byte>
struct ByteDotTypes {
  using Left = float;
  using Element = Byte;
  using Packed = float;
  using Sum = float;
  static constexpr i64 kWork = kPiece;
};

/* A few rows by columns of bytes that lie contiguously, which are widened in registers. */
template <class Byte>
struct ByteDots : Blocking<ByteDots<Byte>, ByteDotTypes<Byte>> {
  using Walk = Blocking<ByteDots<Byte>, ByteDotTypes<Byte>>;

  ByteDots(const Gemm& gemm, i64 products) : Walk(gemm, gemm.k) {
    this->by_dots = true;
    this->terms = gemm.k;
    this->choose_tiles(kTileVectors);
    this->cut(products, this->panels);
  }

  static bool pays(const Gemm& g) {
    return g.m <= kDotRows && g.a_col == 1 && g.b_row == 1 && g.b_col != 1 && !g.fill_a && !g.fill_b;
  }

  bool keeps() const { return false; }
  void pack_panels(float*, i64, i64) const {}
  i64 b_scratch() const { return 0; }
  i64 a_scratch() const { return 0; }
  static Dots<float, Byte> find_dots_of(i64 rows, i64 cols) { return find_dots<float, Byte>(rows, cols); }
  void terms_of_block(const typename Walk::Block&, i64, i64) const {}
};

template <class Byte>
int multiply_by_bytes(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  if (goes_by_rows<Singles<float, Byte>>(*gemm)) return multiply_rows<Singles<float, Byte>>(*gemm, products);
  if (ByteDots<Byte>::pays(*gemm)) {
    ByteDots<Byte> product(*gemm, products);
    return run_product(product, products);
  }
  Gemm g = *gemm;
  Widened right = widened_right(gemm);
  widen_right<Byte>(g, right, g.b_bytes);
  return multiply<float>(&g);
}

int multiply_f32(const Gemm* gemm) {
  if (gemm->b_bytes == kSignedBytes) return multiply_by_bytes<signed char>(gemm);
  return gemm->b_bytes ? multiply_by_bytes<unsigned char>(gemm) : multiply<float>(gemm);
}
