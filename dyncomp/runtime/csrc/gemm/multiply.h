/* The product as parallel work. Included once per instruction set. */

template <class T>
struct Range {
  const Product<T>* product;
  int failed;
};

template <class T>
void block_range(void* raw, i64 lo, i64 hi, int) {
  Range<T>& range = *static_cast<Range<T>*>(raw);
  Scratch<T> scratch;
  if (!scratch.reserve(range.product->scratch_size())) {
    __atomic_store_n(&range.failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (i64 at = lo; at < hi; ++at) range.product->block(at, scratch.data);
}

template <class T>
int multiply(const Gemm* gemm) {
  i64 products = 1;
  for (int axis = 0; axis < gemm->axes; ++axis) products *= gemm->batch[axis];
  if (products == 0 || gemm->m == 0 || gemm->n == 0) return 0;
  const Product<T> product(*gemm, products);
  if (is_depthwise(*gemm)) return convolve_planes(product, products);
  Range<T> range = {&product, 0};
  const i64 blocks = product.row_blocks * product.column_blocks;
  const i64 work = least(gemm->m, product.rows_per_block) * product.panels_per_block * product.panel * (gemm->k + 1);
  parallel_for(block_range<T>, &range, products * blocks, ceil_div(kPiece, work));
  return range.failed;
}
