/* Softmax of rows that are to be multiplied by a matrix: weights that do not sum to one, and what makes them do so,
 * which the product's rows are multiplied by. Included once per instruction set. */

/* exp(x) for x <= 0, denormal results and NaN included, as dc_exp_f32 of generated code computes it. */
__attribute__((always_inline)) inline Lanes<float>::Vector exp_below(Lanes<float>::Vector x0) {
  using Vector = Lanes<float>::Vector;
  typedef unsigned int Bits __attribute__((vector_size(kVectorBytes)));
  constexpr float kRound = 12582912.0f + 254.0f; /* 1.5 * 2^23: the last bits of a sum with it are an integer */
  /* 0 is the product of factors that are 0: one that rounds to it takes long on some processors */
  const Vector x = x0 < -104.0f ? Vector{} - 176.0f : x0;
  const Vector shifted = x * 0x1.715476p+0f + kRound;
  const Vector whole = shifted - kRound;
  /* log(2) in two parts, of which the first has few bits */
  Vector rest = x - whole * 0x1.62ep-1f;
  rest -= whole * 0x1.0bfbe8e7p-15f;
  Vector y = rest * 0.001392625083f + 0.008363232884f;
  y = y * rest + 0.04166655421f;
  y = y * rest + 0.1666657667f;
  y = y * rest + 0.5f;
  y = y * rest + 1.0f;
  y = y * rest + 1.0f;
  const Bits twice = reinterpret_cast<Bits>(shifted), half = twice >> 1;
  return y * reinterpret_cast<Vector>(half << 23) * reinterpret_cast<Vector>((twice - half) << 23);
}

/* One row of `count` scores, of which those from `seen` on are hidden (-inf), as weights; the padding behind them
 * becomes 0, too. What the weights are to be multiplied by. */
inline float soften(float* row, i64 count, i64 seen, float factor, bool empty_is_zero) {
  using Vector = Lanes<float>::Vector;
  using Unaligned = Lanes<float>::Unaligned;
  constexpr i64 kWidth = Lanes<float>::kWidth;
  constexpr float kLowest = -__builtin_inff();
  const i64 end = ceil_div(seen, kWidth) * kWidth, all = ceil_div(count, kWidth) * kWidth;
  const Vector lowest = Vector{} + kLowest;
  for (i64 j = seen; j < end; ++j) row[j] = kLowest;
  for (i64 j = end; j < all; ++j) row[j] = 0;
  Vector highest[2] = {lowest, lowest};
  i64 j = 0;
  for (; j + 2 * kWidth <= end; j += 2 * kWidth)
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const Vector now = *reinterpret_cast<const Unaligned*>(row + j + k * kWidth);
      highest[k] = now > highest[k] ? now : highest[k]; /* a NaN is found by the sum */
    }
  for (; j < end; j += kWidth) {
    const Vector now = *reinterpret_cast<const Unaligned*>(row + j);
    highest[0] = now > highest[0] ? now : highest[0];
  }
  highest[0] = highest[1] > highest[0] ? highest[1] : highest[0];
  float top = kLowest;
  for (int lane = 0; lane < kWidth; ++lane) top = highest[0][lane] > top ? highest[0][lane] : top;
  if (top == kLowest) {
    bool is_number = true;
    for (j = 0; j < seen; ++j) is_number &= row[j] == row[j];
    for (j = 0; j < end; ++j) row[j] = 0;
    return empty_is_zero && is_number ? 1.0f : __builtin_nanf("");
  }
  /* the difference first: that of products loses all of its digits where scores are large */
  const Vector scale = Vector{} + factor, near = Vector{} + top;
  Vector sums[2] = {Vector{}, Vector{}};
  for (j = 0; j + 2 * kWidth <= end; j += 2 * kWidth)
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      Unaligned* const at = reinterpret_cast<Unaligned*>(row + j + k * kWidth);
      const Vector weights = exp_below((*at - near) * scale);
      *at = weights;
      sums[k] += weights;
    }
  for (; j < end; j += kWidth) {
    Unaligned* const at = reinterpret_cast<Unaligned*>(row + j);
    const Vector weights = exp_below((*at - near) * scale);
    *at = weights;
    sums[0] += weights;
  }
  return 1.0f / lane_sum<float>(sums[0] + sums[1]);
}

/* Float64 has kernels of its own for rows. */
inline double soften(double*, i64, i64, double, bool) { return 1.0; }

/* row[j] *= factor */
template <class T>
void scale_row(T* row, i64 count, T factor) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr i64 kWidth = Lanes<T>::kWidth;
  i64 j = 0;
  for (; j + kWidth <= count; j += kWidth) *reinterpret_cast<Unaligned*>(row + j) *= factor;
  for (; j < count; ++j) row[j] *= factor;
}

/* Whether all elements of a row are finite. */
template <class T>
bool all_finite(const T* row, i64 step, i64 count) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr i64 kWidth = Lanes<T>::kWidth;
  typename Lanes<T>::Vector zeros = {};
  T zero = 0;
  i64 j = 0;
  if (step == 1)
    for (; j + kWidth <= count; j += kWidth) zeros += *reinterpret_cast<const Unaligned*>(row + j) * T(0);
  for (; j < count; ++j) zero += row[j * step] * T(0);
  return lane_sum<T>(zeros) + zero == 0;
}
