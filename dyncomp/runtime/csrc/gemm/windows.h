/* Convolutions as products with the windows of an image. Included once per instruction set.
 *
 * Row (channel, y, x) of B has, for each place of the result, the element of the image that the kernel's element
 * (y, x) sees there; the rows are made panel by panel, just before they are used ("implicit GEMM"). */

/* Copies may write up to so many elements behind what they are to write, and read as many beyond. */
template <class T>
constexpr i64 kSlack = Lanes<T>::kWidth;

template <class T>
void fill_zeros(T* to, i64 count) {
  using Unaligned = typename Lanes<T>::Unaligned;
  for (i64 t = 0; t < count; t += Lanes<T>::kWidth) *reinterpret_cast<Unaligned*>(to + t) = Unaligned{};
}

/* Every second of two vectors' elements, from `from` on. */
template <class T>
__attribute__((always_inline)) inline typename Lanes<T>::Vector every_second(const T* from) {
  using Unaligned = typename Lanes<T>::Unaligned;
  typedef typename Lanes<T>::Lane Mask __attribute__((vector_size(kVectorBytes)));
  constexpr int kWidth = Lanes<T>::kWidth;
  Mask even;
#pragma GCC unroll 16
  for (int lane = 0; lane < kWidth; ++lane) even[lane] = 2 * lane;
  const typename Lanes<T>::Vector low = *reinterpret_cast<const Unaligned*>(from);
  const typename Lanes<T>::Vector high = *reinterpret_cast<const Unaligned*>(from + kWidth);
  return __builtin_shuffle(low, high, even);
}

template <class T>
__attribute__((always_inline)) inline typename Lanes<T>::Vector every_fourth(const T* from) {
  constexpr int kWidth = Lanes<T>::kWidth;
  const typename Lanes<T>::Vector halves[2] = {every_second(from), every_second(from + 2 * kWidth)};
  return every_second(reinterpret_cast<const T*>(halves));
}

/* `count` elements that lie `step` apart; whole vectors while those end before `end`, the end of the image. */
template <class T>
void copy_steps(const T* from, i64 step, i64 count, const T* end, T* to) {
  using Unaligned = typename Lanes<T>::Unaligned;
  constexpr i64 kWidth = Lanes<T>::kWidth;
  i64 t = 0;
  if (step == 1)
    for (; t < count && from + t + kWidth <= end; t += kWidth)
      *reinterpret_cast<Unaligned*>(to + t) = *reinterpret_cast<const Unaligned*>(from + t);
  else if (step == 2)
    for (; t < count && from + 2 * (t + kWidth) <= end; t += kWidth)
      *reinterpret_cast<Unaligned*>(to + t) = every_second(from + 2 * t);
  else if (step == 4)
    for (; t < count && from + 4 * (t + kWidth) <= end; t += kWidth)
      *reinterpret_cast<Unaligned*>(to + t) = every_fourth(from + 4 * t);
  for (; t < count; ++t) to[t] = from[t * step];
}

/* The end of an image of so many channels. */
template <class T>
const T* image_end(const Windows& w, const T* image, i64 channels) {
  return image + (channels - 1) * w.channel + (w.sizes[0] - 1) * w.step[0] + (w.sizes[1] - 1) * w.step[1] + 1;
}

/* Steps of `stride` that reach over `distance`; most strides are 1 or 2, and divisions are slow. */
__attribute__((always_inline)) inline i64 steps_over(i64 distance, i64 stride) {
  if (stride == 1) return distance;
  return stride == 2 ? (distance + 1) >> 1 : ceil_div(distance, stride);
}

/* Which of `count` places, the first of which sees column `first` of the image, see columns of it. */
struct Inside {
  i64 from, to;

  Inside(const Windows& w, i64 first, i64 count) {
    from = first < 0 ? least(count, steps_over(-first, w.stride[1])) : 0;
    to = first < w.sizes[1] ? least(count, steps_over(w.sizes[1] - first, w.stride[1])) : 0;
    if (to < from) to = from;
  }
};

/* An image for pack_windows: the only one. */
template <class T>
struct OneImage {
  const T* image;
  const T* operator()(i64) const { return image; }
};

/* The columns [col, col + cols) of `count` rows of B from row p on, as rows of `width` elements. Columns go through the
 * places of one image after the other, `places` each; `image_of(number)` says where one lies. */
template <class T, class Images>
void pack_windows(const Windows& w, const Images& image_of, i64 channels, i64 p, i64 count, i64 col, i64 cols,
                  i64 width, T* to, i64 places) {
  constexpr i64 kMostColumns = kTileVectors * Lanes<T>::kWidth;
  struct Piece {
    const T *image, *end;
    i64 at, count, y, x; /* places of one row of the result, and what the first sees at the kernel's corner */
  } pieces[kMostColumns];
  int found = 0;
  for (i64 at = 0; at < cols;) {
    const i64 place = (col + at) % places, y = place / w.columns, x = place % w.columns;
    const i64 length = least(w.columns - x, cols - at);
    const T* const image = image_of((col + at) / places);
    pieces[found++] = {image, image_end(w, image, channels), at, length, y * w.stride[0] - w.padding[0],
                       x * w.stride[1] - w.padding[1]};
    at += length;
  }
  const i64 area = w.kernel[0] * w.kernel[1];
  i64 channel = p / area, ky = p % area / w.kernel[1], kx = p % w.kernel[1];
  for (i64 row = 0; row < count; ++row) {
    const i64 down = ky * w.dilation[0], right = kx * w.dilation[1];
    for (int number = 0; number < found; ++number) {
      const Piece& piece = pieces[number];
      const i64 y = piece.y + down, x = piece.x + right;
      T* const start = to + piece.at;
      if (y < 0 || y >= w.sizes[0]) {
        fill_zeros(start, piece.count);
        continue;
      }
      const Inside inside(w, x, piece.count);
      if (inside.from > 0) fill_zeros(start, inside.from);
      copy_steps(piece.image + channel * w.channel + y * w.step[0] + (x + inside.from * w.stride[1]) * w.step[1],
                 w.stride[1] * w.step[1], inside.to - inside.from, piece.end, start + inside.from);
      if (inside.to < piece.count) fill_zeros(start + inside.to, piece.count - inside.to);
    }
    if (cols < width) fill_zeros(to + cols, width - cols);
    to += width;
    if (++kx < w.kernel[1]) continue;
    kx = 0;
    if (++ky < w.kernel[0]) continue;
    ky = 0;
    ++channel;
  }
}

/* Of one image. */
template <class T>
void pack_windows(const Windows& w, const T* image, i64 channels, i64 p, i64 count, i64 col, i64 cols, i64 width,
                  T* to) {
  pack_windows(w, OneImage<T>{image}, channels, p, count, col, cols, width, to, col + cols);
}
