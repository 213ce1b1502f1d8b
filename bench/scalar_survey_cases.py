"""More programs of loops, as people write them for Numba, none of them tuned for: complex numbers, rows of
arrays, slices, lists as stacks and queues, tuples, strings, dictionaries, random numbers."""

from __future__ import annotations

import math

import numpy as np

from .scalar_cases import Case


def mandelbrot_complex(height, width, limit):
    out = np.zeros((height, width), dtype=np.int64)
    for y in range(height):
        for x in range(width):
            c = complex(-2.0 + 3.0 * x / width, -1.0 + 2.0 * y / height)
            z = 0j
            for n in range(limit):
                z = z * z + c
                if abs(z) > 2.0:
                    out[y, x] = n
                    break
    return out


def julia_grid(grid, c, limit):
    out = np.zeros(grid.shape, dtype=np.int64)
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            z = grid[i, j]
            n = 0
            while n < limit and z.real * z.real + z.imag * z.imag < 4.0:
                z = z * z + c
                n += 1
            out[i, j] = n
    return out


def fft_radix2(x):
    n = len(x)
    a = x.copy()
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            t = a[i]
            a[i] = a[j]
            a[j] = t
    size = 2
    while size <= n:
        angle = -2.0 * math.pi / size
        step = complex(math.cos(angle), math.sin(angle))
        for start in range(0, n, size):
            w = 1.0 + 0.0j
            for k in range(size // 2):
                u = a[start + k]
                v = a[start + k + size // 2] * w
                a[start + k] = u + v
                a[start + k + size // 2] = u - v
                w = w * step
        size *= 2
    return a


def horner_complex(coefficients, points):
    total = 0j
    for k in range(len(points)):
        z = points[k]
        value = 0j
        for c in coefficients:
            value = value * z + c
        total += value / (1.0 + abs(value))
    return total


def nbody_rows(pos, vel, mass, dt, steps):
    n = pos.shape[0]
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                d = pos[i] - pos[j]
                r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01
                f = dt / (r2 * math.sqrt(r2))
                vel[i] -= d * (mass[j] * f)
                vel[j] += d * (mass[i] * f)
        for i in range(n):
            pos[i] += vel[i] * dt
    return pos.sum()


def nearest_rows(points, centers):
    labels = np.zeros(points.shape[0], dtype=np.int64)
    for i in range(points.shape[0]):
        best = np.inf
        for k in range(centers.shape[0]):
            d = points[i] - centers[k]
            dist = np.dot(d, d)
            if dist < best:
                best = dist
                labels[i] = k
    return labels


def row_sums(a):
    total = 0.0
    for i in range(a.shape[0]):
        s = a[i, :].sum()
        if s > 0:
            total += s
    return total


def ray_march(n):
    total = 0.0
    for k in range(n):
        t = k / n
        origin = (0.0, 0.0, -3.0)
        direction = (0.3 * t, 0.2 * t, 1.0)
        depth = 0.0
        for _ in range(64):
            x = origin[0] + direction[0] * depth
            y = origin[1] + direction[1] * depth
            z = origin[2] + direction[2] * depth
            d = math.sqrt(x * x + y * y + z * z) - 1.0
            if d < 1e-4:
                break
            depth += d
            if depth > 20.0:
                break
        total += depth
    return total


def lorenz(state, dt):
    x, y, z = state
    return x + dt * 10.0 * (y - x), y + dt * (x * (28.0 - z) - y), z + dt * (x * y - 8.0 / 3.0 * z)


def lorenz_steps(n, dt):
    state = (1.0, 1.0, 1.0)
    for _ in range(n):
        state = lorenz(state, dt)
    return state[0] + state[1] + state[2]


def sieve_slices(n):
    flags = np.ones(n, dtype=np.bool_)
    flags[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if flags[i]:
            flags[i * i :: i] = False
    count = 0
    for i in range(n):
        if flags[i]:
            count += 1
    return count


def bfs(indptr, indices, source):
    n = len(indptr) - 1
    distance = np.full(n, -1)
    distance[source] = 0
    queue = [source]
    head = 0
    while head < len(queue):
        u = queue[head]
        head += 1
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if distance[v] < 0:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


def dfs_grid(grid):
    h, w = grid.shape
    seen = np.zeros((h, w), dtype=np.bool_)
    largest = 0
    for y0 in range(h):
        for x0 in range(w):
            if grid[y0, x0] and not seen[y0, x0]:
                size = 0
                stack = [(y0, x0)]
                seen[y0, x0] = True
                while stack:
                    y, x = stack.pop()
                    size += 1
                    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                        v, u = y + dy, x + dx
                        if 0 <= v < h and 0 <= u < w and grid[v, u] and not seen[v, u]:
                            seen[v, u] = True
                            stack.append((v, u))
                if size > largest:
                    largest = size
    return largest


def quicksort_stack(a):
    stack = [0, len(a) - 1]
    while stack:
        hi = stack.pop()
        lo = stack.pop()
        if lo >= hi:
            continue
        pivot = a[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        stack.append(lo)
        stack.append(j)
        stack.append(i)
        stack.append(hi)
    return a


def union_find(edges, n):
    parent = list(range(n))
    joined = 0
    for k in range(edges.shape[0]):
        x, y = edges[k, 0], edges[k, 1]
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        while parent[y] != y:
            parent[y] = parent[parent[y]]
            y = parent[y]
        if x != y:
            parent[x] = y
            joined += 1
    return joined


def lcs(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table[len(a), len(b)]


def smith_waterman(a, b):
    best = 0
    previous = [0] * (len(b) + 1)
    for i in range(len(a)):
        row = [0] * (len(b) + 1)
        for j in range(len(b)):
            match = 2 if a[i] == b[j] else -1
            score = max(0, previous[j] + match, previous[j + 1] - 1, row[j] - 1)
            row[j + 1] = score
            if score > best:
                best = score
        previous = row
    return best


def life(grid, steps):
    h, w = grid.shape
    for _ in range(steps):
        after = np.zeros_like(grid)
        for i in range(h):
            for j in range(w):
                n = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            n += grid[(i + di) % h, (j + dj) % w]
                if n == 3 or (n == 2 and grid[i, j] == 1):
                    after[i, j] = 1
        grid = after
    return grid


def median3(image):
    h, w = image.shape
    out = image.copy()
    window = np.zeros(9)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            k = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    window[k] = image[i + di, j + dj]
                    k += 1
            for p in range(1, 9):
                v = window[p]
                q = p - 1
                while q >= 0 and window[q] > v:
                    window[q + 1] = window[q]
                    q -= 1
                window[q + 1] = v
            out[i, j] = window[4]
    return out


def bilateral(image, sigma, radius):
    h, w = image.shape
    out = np.zeros_like(image)
    for i in range(h):
        for j in range(w):
            total = weight = 0.0
            for y in range(max(i - radius, 0), min(i + radius + 1, h)):
                for x in range(max(j - radius, 0), min(j + radius + 1, w)):
                    d = image[y, x] - image[i, j]
                    g = math.exp(-(d * d) / sigma - ((y - i) ** 2 + (x - j) ** 2) / 8.0)
                    total += g * image[y, x]
                    weight += g
            out[i, j] = total / weight
    return out


def convolve2d(image, kernel):
    h, w = image.shape
    kh, kw = kernel.shape
    out = np.zeros((h - kh + 1, w - kw + 1))
    for i in range(h - kh + 1):
        for j in range(w - kw + 1):
            s = 0.0
            for p in range(kh):
                for q in range(kw):
                    s += image[i + p, j + q] * kernel[p, q]
            out[i, j] = s
    return out


def box_blur(image):
    h, w = image.shape
    out = np.zeros_like(image)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            s = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    s += image[i + di, j + dj]
            out[i, j] = s / 9.0
    return out


def histogram(x, low, high, bins):
    counts = np.zeros(bins, dtype=np.int64)
    scale = bins / (high - low)
    for v in x:
        k = int((v - low) * scale)
        if 0 <= k < bins:
            counts[k] += 1
    return counts


def kmeans_loops(points, centers, rounds):
    n, d = points.shape
    k = centers.shape[0]
    for _ in range(rounds):
        sums = np.zeros((k, d))
        counts = np.zeros(k, dtype=np.int64)
        for i in range(n):
            best, which = 1e30, 0
            for c in range(k):
                dist = 0.0
                for j in range(d):
                    diff = points[i, j] - centers[c, j]
                    dist += diff * diff
                if dist < best:
                    best, which = dist, c
            counts[which] += 1
            for j in range(d):
                sums[which, j] += points[i, j]
        for c in range(k):
            if counts[c] > 0:
                for j in range(d):
                    centers[c, j] = sums[c, j] / counts[c]
    return centers


def lu_decompose(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def thomas(a, b, c, d):
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def bisect_roots(targets):
    out = np.empty(len(targets))
    for k, t in enumerate(targets):
        lo, hi = 0.0, 10.0
        while hi - lo > 1e-10:
            mid = 0.5 * (lo + hi)
            if mid * mid * mid - mid < t:
                lo = mid
            else:
                hi = mid
        out[k] = lo
    return out


def binary_search(a, keys):
    found = 0
    for key in keys:
        lo, hi = 0, len(a)
        while lo < hi:
            mid = (lo + hi) // 2
            if a[mid] < key:
                lo = mid + 1
            else:
                hi = mid
        if lo < len(a) and a[lo] == key:
            found += 1
    return found


def sandpile(grid):
    n = grid.shape[0]
    while True:
        moved = 0
        for i in range(n):
            for j in range(n):
                if grid[i, j] >= 4:
                    grid[i, j] -= 4
                    moved += 1
                    if i > 0:
                        grid[i - 1, j] += 1
                    if i < n - 1:
                        grid[i + 1, j] += 1
                    if j > 0:
                        grid[i, j - 1] += 1
                    if j < n - 1:
                        grid[i, j + 1] += 1
        if moved == 0:
            break
    return grid


def logistic_walk(n):
    x, total, seed = 0.3, 0, 12345
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        x = 3.7 * x * (1.0 - x)
        total += 1 if seed / 0x7FFFFFFF < x else -1
    return total


def perlin(perm, n):
    total = 0.0
    for a in range(n):
        for b in range(n):
            x, y = a * 0.13, b * 0.17
            xi, yi = int(x) & 255, int(y) & 255
            xf, yf = x - int(x), y - int(y)
            u = xf * xf * xf * (xf * (xf * 6 - 15) + 10)
            v = yf * yf * yf * (yf * (yf * 6 - 15) + 10)
            g00 = perm[(perm[xi] + yi) & 255] & 3
            g10 = perm[(perm[(xi + 1) & 255] + yi) & 255] & 3
            g01 = perm[(perm[xi] + yi + 1) & 255] & 3
            g11 = perm[(perm[(xi + 1) & 255] + yi + 1) & 255] & 3
            n00 = (xf if g00 & 1 else -xf) + (yf if g00 & 2 else -yf)
            n10 = (xf - 1 if g10 & 1 else 1 - xf) + (yf if g10 & 2 else -yf)
            n01 = (xf if g01 & 1 else -xf) + (yf - 1 if g01 & 2 else 1 - yf)
            n11 = (xf - 1 if g11 & 1 else 1 - xf) + (yf - 1 if g11 & 2 else 1 - yf)
            top = n00 + u * (n10 - n00)
            total += top + v * (n01 + u * (n11 - n01) - top)
    return total


def heat_slices(u, steps):
    n = len(u)
    for _ in range(steps):
        before = u.copy()
        for i in range(1, n - 1):
            u[i] = before[i] + 0.1 * (before[i - 1] - 2.0 * before[i] + before[i + 1])
    return u


def monte_carlo_pi(n):
    np.random.seed(3)
    inside = 0
    for _ in range(n):
        x = np.random.random()
        y = np.random.random()
        if x * x + y * y < 1.0:
            inside += 1
    return 4.0 * inside / n


def prefix_and_gaps(x):
    total = 0.0
    out = np.zeros(len(x) + 1)
    for i, v in enumerate(x):
        total += v
        out[i + 1] = total
    largest = 0.0
    for a, b in zip(out, out[1:]):
        largest = max(largest, b - a)
    return out, largest


def primes_list(n):
    primes = []
    for k in range(2, n):
        is_prime = True
        for p in primes:
            if p * p > k:
                break
            if k % p == 0:
                is_prime = False
                break
        if is_prime:
            primes.append(k)
    return len(primes)


def heap_merge(a):
    heap = []
    for v in a:
        heap.append(v)
        k = len(heap) - 1
        while k > 0 and heap[(k - 1) // 2] > heap[k]:
            heap[(k - 1) // 2], heap[k] = heap[k], heap[(k - 1) // 2]
            k = (k - 1) // 2
    total = 0.0
    for rank in range(len(a)):
        top = heap[0]
        last = heap.pop()
        if heap:
            heap[0] = last
            k = 0
            while 2 * k + 1 < len(heap):
                c = 2 * k + 1
                if c + 1 < len(heap) and heap[c + 1] < heap[c]:
                    c += 1
                if heap[k] <= heap[c]:
                    break
                heap[k], heap[c] = heap[c], heap[k]
                k = c
        total += rank * top
    return total


def _rng():
    return np.random.default_rng(11)


def _graph():
    rng = _rng()
    n, m = 4000, 16000
    degrees = np.bincount(rng.integers(0, n, m), minlength=n)
    return np.concatenate([[0], np.cumsum(degrees)]), rng.integers(0, n, m), 0


def _grid(n):
    axis = np.linspace(-1.5, 1.5, n)
    return axis[:, None] * 1j + axis[None, :]


CASES = [
    Case("mandelbrot, complex", mandelbrot_complex, lambda: (60, 90, 60)),
    Case("julia, complex array", julia_grid, lambda: (_grid(80), -0.4 + 0.6j, 60)),
    Case("FFT", fft_radix2, lambda: (_rng().normal(size=2048) + 0j,)),
    Case(
        "polynomial, complex",
        horner_complex,
        lambda: ([1j, 2.0 + 0j, 0.5 - 1j], list(_grid(60).ravel()[:3000].tolist())),
    ),
    Case(
        "n-body, rows",
        nbody_rows,
        lambda: (_rng().normal(size=(8, 3)), np.zeros((8, 3)), np.ones(8), 0.01, 60),
    ),
    Case("nearest, rows", nearest_rows, lambda: (_rng().normal(size=(800, 3)), _rng().normal(size=(8, 3)))),
    Case("row sums", row_sums, lambda: (_rng().normal(size=(4000, 20)),)),
    Case("ray marching, tuples", ray_march, lambda: (4000,)),
    Case("Lorenz, tuples", lorenz_steps, lambda: (60000, 0.001)),
    Case("sieve, slices", sieve_slices, lambda: (300000,)),
    Case("BFS, list", bfs, _graph),
    Case("DFS, list of tuples", dfs_grid, lambda: (_rng().random((120, 120)) < 0.6,)),
    Case("quicksort, stack", quicksort_stack, lambda: (_rng().normal(size=20000),)),
    Case("union-find, list", union_find, lambda: (_rng().integers(0, 8000, (12000, 2)), 8000)),
    Case("LCS of strings", lcs, lambda: ("ACGTTGCAAC" * 30, "GTCATGCCAT" * 30)),
    Case("Smith-Waterman, lists", smith_waterman, lambda: ("ACGTTGCAAC" * 30, "GTCATGCCAT" * 30)),
    Case("life, 3x3 loops", life, lambda: (_rng().integers(0, 2, (64, 64)), 8)),
    Case("median, 3x3", median3, lambda: (_rng().random((60, 60)),)),
    Case("bilateral", bilateral, lambda: (_rng().random((40, 40)), 0.1, 3)),
    Case("convolution", convolve2d, lambda: (_rng().random((90, 90)), _rng().random((5, 5)))),
    Case("box blur, 3x3", box_blur, lambda: (_rng().random((120, 120)),)),
    Case("histogram", histogram, lambda: (_rng().normal(size=100000), -4.0, 4.0, 64)),
    Case(
        "k-means, loops", kmeans_loops, lambda: (_rng().normal(size=(1500, 4)), _rng().normal(size=(6, 4)), 5)
    ),
    Case("LU", lu_decompose, lambda: (_rng().normal(size=(90, 90)) + 90 * np.eye(90),)),
    Case("Thomas", thomas, lambda: tuple(_rng().random((4, 40000)) + np.array([[0.0], [3.0], [0.0], [0.0]]))),
    Case("bisection", bisect_roots, lambda: (_rng().random(2500) * 50,)),
    Case(
        "binary search",
        binary_search,
        lambda: (np.sort(_rng().integers(0, 90000, 20000)), _rng().integers(0, 90000, 8000)),
    ),
    Case("sandpile", sandpile, lambda: (_rng().integers(0, 8, (40, 40)),)),
    Case("random walk", logistic_walk, lambda: (200000,)),
    Case("Perlin noise", perlin, lambda: (_rng().permutation(256), 120)),
    Case("heat, array copies", heat_slices, lambda: (_rng().random(500), 200)),
    Case("pi, np.random", monte_carlo_pi, lambda: (60000,)),
    Case("prefix sums, zip", prefix_and_gaps, lambda: (_rng().normal(size=60000),)),
    Case("primes, list", primes_list, lambda: (30000,)),
    Case("heap in a list", heap_merge, lambda: (_rng().normal(size=8000).tolist(),)),
]
