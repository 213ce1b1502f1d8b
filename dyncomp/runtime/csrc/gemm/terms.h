/* What convolutions are sums of, and where their operands lie. Included once per instruction set. */

/* Elements multiplied one by one; pairs of them are in brain_terms.h. */
template <class T>
struct Single {
  using Element = T; /* of images and kernels */
  using Term = T;    /* of copies that are multiplied */
  using Sum = T;
  static constexpr i64 kElements = 1; /* of a term */
  using Vector = typename Lanes<T>::Vector;
  using Factors = typename Lanes<T>::Vector;

  __attribute__((always_inline)) static Factors factors(const Term* from) {
    return *reinterpret_cast<const typename Lanes<T>::Unaligned*>(from);
  }

  __attribute__((always_inline)) static Factors everywhere(const Element* from) {
    return *from - Vector{}; /* a broadcast: x - 0 is x, whatever x */
  }

  __attribute__((always_inline)) static void add(Vector& sum, Factors left, Factors right) { sum += left * right; }

  static void copy(const Element* from, i64 count, Element* to) {
    for (i64 t = 0; t < count; ++t) to[t] = from[t];
  }

  /* `count` terms whose first elements lie `step` apart, before `end`; each has `others`, `gap` apart. */
  static void copy_terms(const Element* from, i64, i64, i64 step, i64 count, const Element* end, Term* to) {
    copy_steps(from, step, count, end, to);
  }

  /* The sums of rows of `a` with rows of b that lie at places of their own. */
  static void placed_tile(i64 rows, i64 vectors, i64 terms, const Term* a, i64 a_row, i64 a_step, const Term* from,
                          const i64* places, Sum* c, i64 c_row, Ahead<Term> next) {
    find_tile<T, Placed<T>>(rows, vectors)(terms, a, a_row, a_step, from, 0, places, c, c_row, Into::kNothing, next);
  }

  /* `k` rows of `cols` columns as rows of `width` terms. */
  static void pack(const Element* from, i64 row, i64 col, i64 k, i64 cols, i64 width, Term* to) {
    pack_panel(from, row, col, k, cols, width, to);
  }
};

/* Where the operands of each product of a batch lie. */
template <class Kind>
struct Operands {
  const Gemm& g;

  i64 offset(i64 index, const i64* strides) const { return batch_offset(g, index, strides); }

  const typename Kind::Element* a_of(i64 index) const {
    return static_cast<const typename Kind::Element*>(g.a) + offset(index, g.a_batch);
  }
  const typename Kind::Element* b_of(i64 index) const {
    return static_cast<const typename Kind::Element*>(g.b) + offset(index, g.b_batch);
  }
  typename Kind::Sum* c_of(i64 index) const {
    return static_cast<typename Kind::Sum*>(g.c) + offset(index, g.c_batch);
  }

  /* Different matrices among those of a batch. */
  i64 groups(const i64* strides) const {
    i64 found = 1;
    for (int axis = 0; axis < g.axes; ++axis)
      if (strides[axis] != 0) found *= g.batch[axis];
    return found;
  }
};

/* Elements of type `To` that hold so many of type `From`. */
template <class To, class From>
constexpr i64 held_by(i64 count) {
  return (count * static_cast<i64>(sizeof(From)) + static_cast<i64>(sizeof(To)) - 1) / static_cast<i64>(sizeof(To));
}

/* Parts [from, end) of a copy, made in parallel by `maker.make_parts(to, from, end)`. */
template <class Maker, class Term>
struct Making {
  const Maker* maker;
  Term* to;
};

template <class Maker, class Term>
void making_range(void* raw, i64 lo, i64 hi, int) {
  const Making<Maker, Term>& making = *static_cast<const Making<Maker, Term>*>(raw);
  making.maker->make_parts(making.to, lo, hi);
}

template <class Maker, class Term>
void make_copy(const Maker& maker, Term* to, i64 parts, i64 work) {
  Making<Maker, Term> making = {&maker, to};
  parallel_for(making_range<Maker, Term>, &making, parts, ceil_div(kPiece, work + 1));
}
