/* Products of bfloat16 where the processor has no instruction for them: both operands are widened to float32 as they are
 * packed. Included once per instruction set. */

/* Elements that are made at once where an operand is made of something else. */
constexpr i64 kWidenedAtOnce = 256;

/* An operand of bfloat16 as one that is made (`Filling` in abi.h). */
struct Widened {
  const Gemm* g;
  const void* from;
  i64 row, col; /* strides; where `turned`, "rows" of what is made are columns */
  const i64* batch;
  const Filling* made;
  bool turned;
  Filling filling;
};

void widen_row(const unsigned short* from, i64 step, i64 count, float* to) {
  for (i64 j = 0; j < count; ++j) {
    const unsigned bits = static_cast<unsigned>(from[j * step]) << 16;
    __builtin_memcpy(to + j, &bits, sizeof(bits));
  }
}

void widen_block(void* raw, const void* out, i64 to_row, i64 product, i64 row, i64 rows, i64 col, i64 cols) {
  const Widened& of = *static_cast<const Widened*>(raw);
  float* to = static_cast<float*>(const_cast<void*>(out));
  if (of.made) {
    unsigned short some[kWidenedAtOnce];
    for (i64 r = 0; r < rows; ++r, to += to_row)
      for (i64 c = 0; c < cols; c += kWidenedAtOnce) {
        const i64 count = least(kWidenedAtOnce, cols - c);
        of.made->fill(of.made->context, some, kWidenedAtOnce, product, row + r, 1, col + c, count);
        widen_row(some, 1, count, to + c);
      }
    return;
  }
  const unsigned short* from = static_cast<const unsigned short*>(of.from);
  for (int axis = of.g->axes - 1; axis >= 0; --axis) {
    from += product % of.g->batch[axis] * of.batch[axis];
    product /= of.g->batch[axis];
  }
  const i64 down = of.turned ? of.col : of.row, along = of.turned ? of.row : of.col;
  for (i64 r = 0; r < rows; ++r) widen_row(from + (row + r) * down + col * along, along, cols, to + r * to_row);
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

int multiply_widened(const Gemm* gemm) {
  if (gemm->windows) return convolve_widened(gemm);
  Gemm g = *gemm;
  Widened left = {gemm, g.a, g.a_row, g.a_col, g.a_batch, g.fill_a, false, {}};
  Widened right = {gemm, g.b, g.b_row, g.b_col, g.b_batch, g.fill_b, g.b_row == 1 && g.b_col != 1, {}};
  left.filling.fill = right.filling.fill = widen_block;
  left.filling.context = &left;
  if (g.fill_b) {
    right.filling = *g.fill_b;
    right.filling.fill = widen_block;
    right.filling.tag ^= 1ll << 60; /* not what is made where it is read as it is */
  } else {
    g.kept = g.kept && g.k > 0 && is_one_matrix(g) && lies_close(g.k, g.b_row, g.n, g.b_col);
    right.filling.bytes = 2 * extent_of(g.k, g.b_row, g.n, g.b_col);
    const i64 parts[] = {g.k, g.n, g.b_row, g.b_col};
    size_t tag = 1ull << 61;
    for (const i64 part : parts) tag = (tag ^ static_cast<size_t>(part)) * 0x9E3779B97F4A7C15u;
    right.filling.tag = static_cast<i64>(tag | 1);
  }
  right.filling.context = &right;
  g.fill_a = &left.filling;
  g.fill_b = &right.filling;
  return multiply<float>(&g);
}
