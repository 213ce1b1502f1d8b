/* Pairs of bfloat16 as the terms of convolutions (terms.h): elements beside each other, or of two channels. Included by
 * avx512_bf16.cpp. */

struct Pairs {
  using Element = Brain;
  using Term = int;
  using Sum = float;
  static constexpr i64 kElements = 2;
  using Vector = __m512;
  using Factors = __m512bh;

  __attribute__((always_inline)) static Factors factors(const Term* from) { return as_terms(_mm512_loadu_si512(from)); }

  __attribute__((always_inline)) static Factors everywhere(const Element* from) {
    return as_terms(_mm512_set1_epi32(*reinterpret_cast<const Pair*>(from)));
  }

  __attribute__((always_inline)) static void add(Vector& sum, Factors left, Factors right) {
    sum = _mm512_dpbf16_ps(sum, left, right);
  }

  static void copy(const Element* from, i64 count, Element* to) {
    for (i64 t = 0; t < count; t += kTermLanes) {
      const __mmask32 mask = first_terms(count - t);
      _mm512_mask_storeu_epi16(to + t, mask, _mm512_maskz_loadu_epi16(mask, from + t));
    }
  }

  static void pack(const Element* from, i64 row, i64 col, i64 k, i64 cols, i64 width, Term* to) {
    pack_pairs(from, row, col, k, cols, width, reinterpret_cast<Pair*>(to));
  }

  static void copy_terms(const Element* from, i64 others, i64 gap, i64 step, i64 count, const Element*, Term* to) {
    for (i64 t = 0; t < count; t += kTermLanes, from += kTermLanes * step) {
      const i64 now = least(kTermLanes, count - t);
      const Woven woven = weave(every(from, step, now), others ? every(from + gap, step, now) : _mm512_setzero_si512());
      _mm512_mask_storeu_epi32(to + t, first_pairs(now), woven.first);
      if (now > kPairLanes) _mm512_mask_storeu_epi32(to + t + kPairLanes, first_pairs(now - kPairLanes), woven.second);
    }
  }

  /* Up to 32 elements that lie `step` apart; nothing else is read. */
  static __m512i every(const Element* from, i64 step, i64 count) {
    if (step == 1) return _mm512_maskz_loadu_epi16(first_terms(count), from);
    if (step == 2) {
      const i64 all = 2 * count - 1;
      const __m512i low = _mm512_maskz_loadu_epi16(first_terms(all), from);
      const __m512i high = _mm512_maskz_loadu_epi16(first_terms(most(0, all - kTermLanes)), from + kTermLanes);
      alignas(64) static const short kEven[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                                  32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
      return _mm512_permutex2var_epi16(low, _mm512_load_si512(kEven), high);
    }
    Element found[kTermLanes] __attribute__((aligned(64)));
    for (i64 t = 0; t < count; ++t) found[t] = from[t * step];
    return _mm512_maskz_loadu_epi16(first_terms(count), found);
  }

  static void placed_tile(i64 rows, i64 vectors, i64 terms, const Term* a, i64 a_row, i64 a_step, const Term* from,
                          const i64* places, Sum* c, i64 c_row, Ahead<Term>) {
    find_brain_tile<Placed<int>>(rows, vectors)(terms, reinterpret_cast<const Brain*>(a), 2 * a_row, 2 * a_step,
                                                reinterpret_cast<const Pair*>(from), 0, places, c, c_row, false);
  }
};
