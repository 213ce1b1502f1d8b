/* Blocks of some work in parallel: `work.block(number, scratch)`, with scratch memory for each thread. Included
 * once per instruction set. */

/* Where an operand of one product of a batch begins. */
inline i64 batch_offset(const Gemm& g, i64 index, const i64* strides) {
  i64 total = 0;
  for (int axis = g.axes - 1; axis > 0; --axis) {
    total += index % g.batch[axis] * strides[axis];
    index /= g.batch[axis];
  }
  return g.axes > 0 ? total + index * strides[0] : 0;
}

/* Memory for copies: in the object itself where it is small, else a block of the cache. */
template <class T, i64 kSmall>
struct Memory {
  T small[kSmall] __attribute__((aligned(64)));
  T* data = small;

  /* False where the system has no memory left. */
  bool reserve(i64 elements) {
    if (elements <= kSmall) return true;
    data = static_cast<T*>(scratch_allocate(static_cast<size_t>(elements) * sizeof(T)));
    return data != nullptr;
  }
  ~Memory() {
    if (data && data != small) scratch_free(data);
  }
};

template <class T>
using Scratch = Memory<T, 8192>;

template <class T, class Work>
struct Blocks {
  const Work* work;
  int failed;
};

template <class T, class Work>
void block_range(void* raw, i64 lo, i64 hi, int) {
  Blocks<T, Work>& blocks = *static_cast<Blocks<T, Work>*>(raw);
  Scratch<T> scratch;
  if (!scratch.reserve(blocks.work->scratch_size())) {
    __atomic_store_n(&blocks.failed, 1, __ATOMIC_RELAXED);
    return;
  }
  for (i64 number = lo; number < hi; ++number) blocks.work->block(number, scratch.data);
}

/* 1 if there was no memory. */
template <class T, class Work>
int run_blocks(const Work& work, i64 count, i64 grain) {
  Blocks<T, Work> blocks = {&work, 0};
  parallel_for(block_range<T, Work>, &blocks, count, grain);
  return blocks.failed;
}
