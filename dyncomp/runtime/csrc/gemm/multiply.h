/* The product as parallel work. Included once per instruction set. */

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
  const bool sums = gemm->way == kWayUsual;
  if (gemm->windows && gemm->k > 0 && sums) {
    int failed = 0;
    if (convolve_winograd<T, 1>(product, products, failed)) return failed;
    if (convolve_winograd<T, 2>(product, products, failed)) return failed;
  }
  if (gemm->windows && gemm->windows->channels_last) return convolve_places<Single<T>>(*gemm, products);
  if (gemm->windows && gemm->k > 0 && sums) {
    FewPlaces<T> few(*gemm, products);
    if (few.pays()) return convolve_few_places(few);
    const SmallImages<T> small(*gemm, products);
    if (small.pays()) return convolve_small_images(small);
  }
  if (gemm->windows && gemm->k > 0) {
    const Shifts<Single<T>> shifts(*gemm, products);
    if (gemm->way == kWayShifts ? shifts.possible() : gemm->way != kWayWindows && shifts.pays())
      return run_shifted(shifts, products);
  }
  if (goes_by_vector<T>(*gemm)) return multiply_rows<Singles<T>>(*gemm, products);
  const int failed = run_product(product, products);
  if (product.symmetric && !failed) mirror_all(product, products);
  return failed;
}
