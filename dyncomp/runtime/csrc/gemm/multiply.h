/* The product as parallel work. Included once per instruction set. */

template <class T>
int multiply(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  const Product<T> product(*gemm, products);
  if (is_depthwise(*gemm)) return convolve_planes(product, products);
  if (gemm->windows && gemm->k > 0) {
    const Shifts<T> shifts(product, products);
    if (shifts.pays()) return convolve_shifted(shifts, products);
  }
  const i64 blocks = product.row_blocks * product.column_blocks;
  const i64 work = least(gemm->m, product.rows_per_block) * product.panels_per_block * product.panel * (gemm->k + 1);
  return run_blocks<T>(product, products * blocks, ceil_div(kPiece, work));
}
