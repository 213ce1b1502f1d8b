/* The sums of convolutions with fewer multiplications, along one axis. Included once per instruction set.
 *
 * Kernels of three elements, two places of the result at once. Where places are one apart the method is F(2, 3) of
 * Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): 4 multiplications for 6. Where they are
 * two apart the outer elements of the kernel see even elements of the image, as a kernel of two that moves by one, for
 * which F(2, 2) takes 3 for 4, and the middle one sees odd ones: 5 for 6. Of all that goes into the sum for a place no
 * element lies outside of what the place sees: an element of the image changes no place that does not see it. */

/* Sums over what two places see, which are as many as the elements that they see; sums of a kernel's elements. */
constexpr int sums_along(int stride) { return stride == 1 ? 4 : 5; }
constexpr int kKernelSums = 4;

/* Which sum of the kernel's elements a sum over the image is multiplied with. */
constexpr int kernel_sum_of(int sum) { return sum < kKernelSums ? sum : kKernelSums - 1; }

/* Whether what becomes of a sum goes into the second place alone. */
constexpr bool is_of_second(int stride, int sum) { return stride == 1 ? sum == 3 : sum == 2 || sum == 4; }

template <int kStride, class Vector>
__attribute__((always_inline)) inline void sums_of_seen(const Vector* seen, Vector* sums) {
  if constexpr (kStride == 1) {
    sums[0] = seen[0] - seen[2];
    sums[1] = seen[1] + seen[2];
    sums[2] = seen[2] - seen[1];
    sums[3] = seen[1] - seen[3];
  } else {
    sums[0] = seen[0] - seen[2];
    sums[1] = seen[2];
    sums[2] = seen[2] - seen[4];
    sums[3] = seen[1];
    sums[4] = seen[3];
  }
}

template <int kStride, class T, class Vector>
__attribute__((always_inline)) inline void sums_of_kernel(Vector first, Vector middle, Vector last, Vector* sums) {
  if constexpr (kStride == 1) {
    const Vector outer = (first + last) * T(0.5), inner = middle * T(0.5);
    sums[0] = first;
    sums[1] = outer + inner;
    sums[2] = outer - inner;
    sums[3] = last;
  } else {
    sums[0] = first;
    sums[1] = first + last;
    sums[2] = last;
    sums[3] = middle;
  }
}

template <int kStride, class Vector>
__attribute__((always_inline)) inline void places_of_sums(const Vector* made, Vector& first, Vector& second) {
  if constexpr (kStride == 1) {
    first = made[0] + made[1] + made[2];
    second = made[1] - made[2] - made[3];
  } else {
    first = made[0] + made[1] + made[3];
    second = made[1] - made[2] + made[4];
  }
}
