/* Convolutions of bfloat16, in the ways of those of float32 (but not by sums: these would have to be rounded). Included by
 * avx512_bf16.cpp. */

/* What the windows of a kernel see as an operand that is made (`Filling` in abi.h). */
struct Seen {
  Operands<Pairs> images;
  i64 channels;
};

inline void fill_windows(void* raw, const void* to, i64 to_row, i64 product, i64 row, i64 rows, i64 col, i64 cols) {
  const Seen& seen = *static_cast<const Seen*>(raw);
  pack_windows(*seen.images.g.windows, seen.images.b_of(product), seen.channels, row, rows, col, cols, to_row,
               static_cast<Brain*>(const_cast<void*>(to)));
}

inline int multiply_windows(const Gemm& g) {
  const Seen seen = {{g}, g.k / (g.windows->kernel[0] * g.windows->kernel[1])};
  Filling filling = {};
  filling.fill = fill_windows;
  filling.context = const_cast<Seen*>(&seen);
  Gemm product = g;
  product.fill_b = &filling;
  product.windows = nullptr;
  product.kept = 0;
  return multiply_pairs(&product);
}

inline void weave_kernels(const void* raw, void* to) {
  const Shifts<Pairs>& shifts = *static_cast<const Shifts<Pairs>*>(raw);
  make_copy(shifts, static_cast<int*>(to), shifts.operands.groups(shifts.g.a_batch) * shifts.g.m, shifts.g.k);
}

/* What says that a kept copy holds pairs of channels. */
constexpr i64 kWovenTag = 0x50616972;

inline KeptUse take_woven(const Shifts<Pairs>& shifts) {
  if (!shifts.keeps()) return {nullptr, nullptr};
  const Gemm& g = shifts.g;
  const KeptKey key = {g.a, g.m, g.k, g.a_row, g.a_col, sizeof(Brain), shifts.area(), kWovenTag};
  const size_t bytes = static_cast<size_t>(shifts.woven_size()) * sizeof(Pair);
  return kept_take(key, {0, nullptr, nullptr}, bytes, weave_kernels, &shifts);
}

inline int convolve_woven(Shifts<Pairs>& shifts, i64 products) {
  const KeptUse kept = take_woven(shifts);
  Scratch<int> woven;
  shifts.woven = static_cast<const int*>(kept.data);
  if (!shifts.woven) {
    if (!woven.reserve(shifts.woven_size())) return 1;
    weave_kernels(&shifts, woven.data);
    shifts.woven = woven.data;
  }
  const int failed = run_shifted(shifts, products);
  kept_give_back(kept);
  return failed;
}

inline int convolve_pairs(const Gemm& g) {
  i64 products = 1;
  for (int axis = 0; axis < g.axes; ++axis) products *= g.batch[axis];
  if (products == 0 || g.m == 0 || g.n == 0) return 0;
  if (g.windows->channels_last) return convolve_places<Pairs>(g, products);
  Shifts<Pairs> shifts(g, products);
  return shifts.pays() ? convolve_woven(shifts, products) : multiply_windows(g);
}
