/* Vectors of bytes as vectors of wider integers; g++ 12 makes many instructions of __builtin_convertvector. Templates, so
 * that the instructions of other processors are left out. Included once per instruction set. */

typedef short Shorts __attribute__((vector_size(kVectorBytes)));
typedef int Integers __attribute__((vector_size(kVectorBytes)));

/* As many bytes as there are wider integers in a vector. */
template <class Byte, int kCount>
struct Bytes {
  typedef Byte Vector __attribute__((vector_size(kCount)));
  typedef char Plain __attribute__((vector_size(kCount < 16 ? 16 : kCount))); /* of which the rest is not looked at */
};

/* Bytes at the front of a vector. */
template <class Byte, int kCount>
__attribute__((always_inline)) inline typename Bytes<Byte, kCount>::Plain bytes_at(const Byte* from) {
  using Plain = typename Bytes<Byte, kCount>::Plain;
  if constexpr (kCount < 16) {
    typedef long long Halves __attribute__((vector_size(16)));
    long long bits = 0;
    __builtin_memcpy(&bits, from, kCount);
    return reinterpret_cast<Plain>(Halves{bits, 0});
  } else {
    Plain bytes;
    __builtin_memcpy(&bytes, from, kCount);
    return bytes;
  }
}

/* Bytes twice each, where a vector is 16 bytes. */
template <class Plain>
__attribute__((always_inline)) inline Plain twice(Plain bytes) {
  typedef signed char Mask __attribute__((vector_size(16)));
  return __builtin_shuffle(bytes, Mask{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7});
}

template <class Byte, class Plain>
__attribute__((always_inline)) inline Shorts as_shorts(Plain bytes) {
  constexpr bool kSigned = static_cast<Byte>(-1) < 0;
#if defined(__x86_64__)
  if constexpr (kVectorBytes == 64) {
    if constexpr (kSigned) return __builtin_ia32_pmovsxbw512_mask(bytes, Shorts{}, ~0u);
    return __builtin_ia32_pmovzxbw512_mask(bytes, Shorts{}, ~0u);
  } else if constexpr (kVectorBytes == 32) {
    if constexpr (kSigned) return __builtin_ia32_pmovsxbw256(bytes);
    return __builtin_ia32_pmovzxbw256(bytes);
  }
#endif
  if constexpr (kVectorBytes == 16) {
    typedef unsigned short Plus __attribute__((vector_size(16)));
    const Plain both = twice(bytes);
    if constexpr (kSigned) return reinterpret_cast<Shorts>(both) >> 8;
    return reinterpret_cast<Shorts>(reinterpret_cast<Plus>(both) >> 8);
  }
}

template <class Byte, class Plain>
__attribute__((always_inline)) inline Integers as_integers(Plain bytes) {
  constexpr bool kSigned = static_cast<Byte>(-1) < 0;
#if defined(__x86_64__)
  if constexpr (kVectorBytes == 64) {
    if constexpr (kSigned) return __builtin_ia32_pmovsxbd512_mask(bytes, Integers{}, 0xFFFF);
    return __builtin_ia32_pmovzxbd512_mask(bytes, Integers{}, 0xFFFF);
  } else if constexpr (kVectorBytes == 32) {
    if constexpr (kSigned) return __builtin_ia32_pmovsxbd256(bytes);
    return __builtin_ia32_pmovzxbd256(bytes);
  }
#endif
  if constexpr (kVectorBytes == 16) {
    typedef unsigned Plus __attribute__((vector_size(16)));
    typedef short Words __attribute__((vector_size(16)));
    const Words all = __builtin_shuffle(reinterpret_cast<Words>(twice(bytes)), Words{0, 0, 1, 1, 2, 2, 3, 3});
    if constexpr (kSigned) return reinterpret_cast<Integers>(all) >> 24;
    return reinterpret_cast<Integers>(reinterpret_cast<Plus>(all) >> 24);
  }
}
