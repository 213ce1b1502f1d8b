/* The product as parallel work. Included once per instruction set. */

template <class T>
struct Packing {
  const Product<T>* product;
  T* to;
};

template <class T>
void packing_range(void* raw, i64 lo, i64 hi, int) {
  const Packing<T>& packing = *static_cast<const Packing<T>*>(raw);
  packing.product->pack_panels(packing.to, lo, hi);
}

/* All panels of B, for a copy that is kept. */
template <class T>
void pack_all(const void* raw, void* to) {
  const Product<T>& product = *static_cast<const Product<T>*>(raw);
  Packing<T> packing = {&product, static_cast<T*>(to)};
  parallel_for(packing_range<T>, &packing, product.panels, ceil_div(kPiece, product.g.k * product.panel));
}

template <class T>
KeptUse take_packed(const Product<T>& product) {
  if (!product.keeps()) return {nullptr, nullptr};
  const Gemm& g = product.g;
  const size_t bytes = static_cast<size_t>(product.packed_size() * product.kSize);
  if (!g.fill_b) {
    const KeptKey key = {g.b, g.k, g.n, g.b_row, g.b_col, product.kSize, product.panel, 0};
    return kept_take(key, {0, nullptr, nullptr}, bytes, pack_all<T>, &product);
  }
  const Filling& filling = *g.fill_b;
  const KeptKey key = {g.b, 1, filling.bytes, 0, 1, 1, product.panel, filling.tag};
  return kept_take(key, {filling.sides, filling.side, filling.side_bytes}, bytes, pack_all<T>, &product);
}

template <class T>
struct Mirror {
  const Product<T>* product;
  i64 groups; /* of kWidth rows, of one product */
};

/* What lies right of the diagonal, for some groups of rows. */
template <class T>
void mirror_range(void* raw, i64 lo, i64 hi, int) {
  constexpr i64 kWidth = Lanes<T>::kWidth;
  const Mirror<T>& mirror = *static_cast<const Mirror<T>*>(raw);
  const Gemm& g = mirror.product->g;
  for (i64 number = lo; number < hi; ++number) {
    T* const c = mirror.product->c_of(number / mirror.groups);
    const i64 row = number % mirror.groups * kWidth, end = least(g.n, row + kWidth);
    for (i64 i = row; i < end; ++i)
      for (i64 j = i + 1; j < end; ++j) c[i * g.c_row + j] = c[j * g.c_row + i];
    i64 col = end;
    for (; end - row == kWidth && col + kWidth <= g.n; col += kWidth)
      turn_block(c + col * g.c_row + row, g.c_row, c + row * g.c_row + col, g.c_row);
    for (i64 i = row; i < end; ++i)
      for (i64 j = col; j < g.n; ++j) c[i * g.c_row + j] = c[j * g.c_row + i];
  }
}

template <class T>
void mirror_all(const Product<T>& product, i64 products) {
  Mirror<T> mirror = {&product, ceil_div(product.g.n, Lanes<T>::kWidth)};
  parallel_for(mirror_range<T>, &mirror, products * mirror.groups, ceil_div(kPiece, product.g.n * Lanes<T>::kWidth));
}

template <class T>
int multiply(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  Product<T> product(*gemm, products);
  if (gemm->windows && gemm->windows->depthwise)
    return pays_in_depth<T>(*gemm) ? convolve_depth(product, products) : convolve_planes(product, products);
  if (gemm->windows && gemm->k > 0) {
    int failed = 0;
    if (convolve_winograd<T, 1>(product, products, failed)) return failed;
    if (convolve_winograd<T, 2>(product, products, failed)) return failed;
  }
  if (gemm->windows && gemm->windows->channels_last) return convolve_places<Single<T>>(*gemm, products);
  if (gemm->windows && gemm->k > 0) {
    const Shifts<Single<T>> shifts(*gemm, products);
    if (shifts.pays()) return run_shifted(shifts, products);
  }
  if (goes_by_vector<T>(*gemm)) return multiply_vector(product, products);
  const KeptUse kept = take_packed(product);
  product.read_packed(static_cast<const T*>(kept.data));
  const i64 blocks = product.row_blocks * product.column_blocks;
  const i64 work = least(gemm->m, product.rows_per_block) * product.panels_per_block * product.panel * (gemm->k + 1);
  const int failed = run_blocks<T>(product, products * blocks, ceil_div(kPiece, work));
  kept_give_back(kept);
  if (product.symmetric && !failed) mirror_all(product, products);
  return failed;
}
