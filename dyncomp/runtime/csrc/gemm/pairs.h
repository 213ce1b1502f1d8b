/* Pairs of 16-bit integers, which processors multiply and add to a 32-bit integer at once: bytes are widened to these.
 * A pair is two terms of a sum that come one after the other. Included once per instruction set. */

typedef int Pair __attribute__((aligned(2), may_alias));
typedef short UnalignedShorts __attribute__((vector_size(kVectorBytes), aligned(2), may_alias));
using Total = unsigned; /* wraps */
using Totals = Lanes<Total>::Vector;

/* Terms in a vector, which is as many bytes where it is made of bytes. */
constexpr i64 kTermLanes = kVectorBytes / 2;

/* Sums and the products of two terms each. A template, so that the instructions of other processors are left out. */
template <class Sums, class Operand>
__attribute__((always_inline)) inline Sums add_pairs(Sums sums, Operand left, Operand right) {
  using Integers = decltype(sums < sums);
#if defined(__x86_64__)
  if constexpr (kAddsPairs)
    return reinterpret_cast<Sums>(__builtin_ia32_vpdpwssd_v16si(
        reinterpret_cast<Integers>(sums), reinterpret_cast<Integers>(left), reinterpret_cast<Integers>(right)));
  if constexpr (kVectorBytes == 64)
    return sums + reinterpret_cast<Sums>(__builtin_ia32_pmaddwd512_mask(left, right, Integers{}, 0xFFFF));
  if constexpr (kVectorBytes == 32) return sums + reinterpret_cast<Sums>(__builtin_ia32_pmaddwd256(left, right));
  if constexpr (kVectorBytes == 16) return sums + reinterpret_cast<Sums>(__builtin_ia32_pmaddwd128(left, right));
#endif
  const Integers a = reinterpret_cast<Integers>(left), b = reinterpret_cast<Integers>(right);
  return sums + reinterpret_cast<Sums>((a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16));
}

/* A pair in each lane. */
__attribute__((always_inline)) inline Shorts everywhere(const short* pair) {
  return reinterpret_cast<Shorts>(*reinterpret_cast<const Pair*>(pair) - Lanes<int>::Vector{});
}

/* kTermLanes terms. */
template <class Byte>
__attribute__((always_inline)) inline Shorts widened_terms(const Byte* from) {
  return as_shorts<Byte>(bytes_at<Byte, kTermLanes>(from));
}

/* The pairs that kTermLanes columns of two rows make. */
struct Woven {
  Shorts first, second;
};

template <class Byte>
__attribute__((always_inline)) inline Woven woven(const Byte* row, const Byte* below) {
  using Plain = typename Bytes<Byte, kTermLanes>::Plain;
  constexpr int kBytes = kTermLanes < 16 ? 16 : kTermLanes;
  typedef signed char Mask __attribute__((vector_size(kBytes)));
  const Plain x = bytes_at<Byte, kTermLanes>(row), y = bytes_at<Byte, kTermLanes>(below);
  Mask low, high;
#pragma GCC unroll 32
  for (int lane = 0; lane < kBytes; ++lane) {
    low[lane] = static_cast<signed char>(lane % 2 * kBytes + lane / 2);
    high[lane] = static_cast<signed char>(low[lane] + kTermLanes / 2);
  }
  return {as_shorts<Byte>(__builtin_shuffle(x, y, low)), as_shorts<Byte>(__builtin_shuffle(x, y, high))};
}
