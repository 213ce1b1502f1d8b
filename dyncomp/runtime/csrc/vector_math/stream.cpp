/* Stores that go past the caches, for generated code that writes more than these hold.
 *
 * dcv_stream_copy(to, from, bytes) copies; whole cache lines of `to` are written without being read first.
 * dcv_stream_end() has to be called by the same thread before others may read what was written. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

typedef long long i64;

namespace {

const i64 kLine = 64;
/* Long copies ask for what comes a page later: the processor looks ahead within a page only. AMD's look further. */
i64 ahead() {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") ? 1024 : 4096;
}

const i64 kAhead = ahead();
const i64 kLong = 16384;

inline __attribute__((always_inline)) void ask(const char* from, i64 left) {
  if (left >= kAhead) __builtin_prefetch(from + kAhead, 0, 2);
}

__attribute__((target("avx512f"))) void lines_512(char* to, const char* from, i64 bytes) {
  const bool far = bytes >= kLong;
  for (i64 k = 0; k < bytes; k += kLine) {
    if (far) ask(from + k, bytes - k);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + k), _mm512_loadu_si512(from + k));
  }
}

__attribute__((target("avx2"))) void lines_256(char* to, const char* from, i64 bytes) {
  const bool far = bytes >= kLong;
  for (i64 k = 0; k < bytes; k += kLine / 2) {
    if (far && k % kLine == 0) ask(from + k, bytes - k);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
  }
}

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f");
}

const bool kAvx512 = has_avx512();

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void dcv_stream_copy(void* target, const void* source, i64 bytes) {
  char* to = static_cast<char*>(target);
  const char* from = static_cast<const char*>(source);
  const i64 past = reinterpret_cast<i64>(to) % kLine;
  const i64 head = past == 0 ? 0 : kLine - past;
  if (bytes < head + kLine) {
    __builtin_memcpy(to, from, bytes);
    return;
  }
  __builtin_memcpy(to, from, head);
  const i64 whole = (bytes - head) / kLine * kLine;
  (kAvx512 ? lines_512 : lines_256)(to + head, from + head, whole);
  __builtin_memcpy(to + head + whole, from + head + whole, bytes - head - whole);
}

EXPORT void dcv_stream_end() { _mm_sfence(); }
#endif
