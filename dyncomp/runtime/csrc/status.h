/* The processor's sticky floating-point status of this thread, in NumPy's numbers where they leave this file. */
#ifndef DYNCOMP_STATUS_H
#define DYNCOMP_STATUS_H
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dyncomp {

enum : unsigned { kDivide = 1, kOverflow = 2, kUnderflow = 4, kInvalid = 8 }; /* NPY_FPE_* */

#if defined(__x86_64__)
constexpr unsigned kStatusBits = 0x1d; /* invalid 1, (denormal 2), divide 4, overflow 8, underflow 16 */

inline unsigned status_bits() { return _mm_getcsr() & kStatusBits; }
inline void clear_status() {
  const unsigned all = _mm_getcsr();
  if (all & kStatusBits) _mm_setcsr(all & ~kStatusBits);
}
inline void raise_status(unsigned bits) {
  if (bits) _mm_setcsr(_mm_getcsr() | bits);
}
inline unsigned numpy_status(unsigned bits) {
  return (bits & 4 ? kDivide : 0) | (bits & 8 ? kOverflow : 0) | (bits & 16 ? kUnderflow : 0) | (bits & 1 ? kInvalid : 0);
}
inline unsigned native_status(unsigned flags) {
  return (flags & kDivide ? 4 : 0) | (flags & kOverflow ? 8 : 0) | (flags & kUnderflow ? 16 : 0) | (flags & kInvalid ? 1 : 0);
}
#elif defined(__aarch64__)
constexpr unsigned kStatusBits = 0xf; /* invalid 1, divide 2, overflow 4, underflow 8 */

inline unsigned read_fpsr() {
  unsigned long all;
  asm volatile("mrs %0, fpsr" : "=r"(all));
  return static_cast<unsigned>(all);
}
inline void write_fpsr(unsigned all) {
  const unsigned long wide = all;
  asm volatile("msr fpsr, %0" : : "r"(wide));
}
inline unsigned status_bits() { return read_fpsr() & kStatusBits; }
inline void clear_status() {
  const unsigned all = read_fpsr();
  if (all & kStatusBits) write_fpsr(all & ~kStatusBits);
}
inline void raise_status(unsigned bits) {
  if (bits) write_fpsr(read_fpsr() | bits);
}
inline unsigned numpy_status(unsigned bits) {
  return (bits & 2 ? kDivide : 0) | (bits & 4 ? kOverflow : 0) | (bits & 8 ? kUnderflow : 0) | (bits & 1 ? kInvalid : 0);
}
inline unsigned native_status(unsigned flags) {
  return (flags & kDivide ? 2 : 0) | (flags & kOverflow ? 4 : 0) | (flags & kUnderflow ? 8 : 0) | (flags & kInvalid ? 1 : 0);
}
#else
inline unsigned status_bits() { return 0; }
inline void clear_status() {}
inline void raise_status(unsigned) {}
inline unsigned numpy_status(unsigned) { return 0; }
inline unsigned native_status(unsigned) { return 0; }
#endif

}  // namespace dyncomp
#endif
