"""Programs of loops in the style of Numba's examples, Project Euler and Rosetta Code, written to see what of
those that nobody looked at before is compiled."""

from __future__ import annotations

import math

import numpy as np

from .scalar_cases import Case


def bubble_sort(x):
    n = len(x)
    for end in range(n, 1, -1):
        for i in range(end - 1):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
    return x


def shell_sort_list(items):
    gap = len(items) // 2
    while gap > 0:
        for i in range(gap, len(items)):
            held = items[i]
            j = i
            while j >= gap and items[j - gap] > held:
                items[j] = items[j - gap]
                j -= gap
            items[j] = held
        gap //= 2
    return items


def _normal(d):
    k = 1.0 / (1.0 + 0.2316419 * abs(d))
    tail = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    found = 0.39894228040143267794 * math.exp(-0.5 * d * d) * tail
    return 1.0 - found if d > 0 else found


def black_scholes(price, strike, years, rate, volatility):
    call = np.empty_like(price)
    for i in range(len(price)):
        root = math.sqrt(years[i])
        d1 = (math.log(price[i] / strike[i]) + (rate + 0.5 * volatility**2) * years[i]) / (volatility * root)
        d2 = d1 - volatility * root
        discounted = strike[i] * math.exp(-rate * years[i])
        call[i] = price[i] * _normal(d1) - discounted * _normal(d2)
    return call


def collatz_cached(limit):
    lengths = [0] * limit
    lengths[1] = 1
    best = 1
    for start in range(2, limit):
        n, steps = start, 0
        while n >= limit or lengths[n] == 0:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        lengths[start] = lengths[n] + steps
        if lengths[start] > lengths[best]:
            best = start
    return best


def totients(n):
    phi = np.arange(n + 1)
    for i in range(2, n + 1):
        if phi[i] == i:
            for j in range(i, n + 1, i):
                phi[j] -= phi[j] // i
    total = 0
    for i in range(1, n + 1):
        total += phi[i]
    return total


def divisor_sum(n):
    total = 1
    k = 2
    while k * k <= n:
        if n % k == 0:
            total += k
            if k != n // k:
                total += n // k
        k += 1
    return total


def amicable(limit):
    total = 0
    for a in range(2, limit):
        b = divisor_sum(a)
        if b != a and b > 1 and divisor_sum(b) == a:
            total += a
    return total


def palindromes(low, high):
    best = 0
    for a in range(low, high):
        for b in range(a, high):
            product = a * b
            if product <= best:
                continue
            rest, turned = product, 0
            while rest > 0:
                turned = turned * 10 + rest % 10
                rest //= 10
            if turned == product:
                best = product
    return best


def coin_sums(coins, target):
    ways = [0] * (target + 1)
    ways[0] = 1
    for coin in coins:
        for amount in range(coin, target + 1):
            ways[amount] = (ways[amount] + ways[amount - coin]) % 1000000007
    return ways[target]


def queens(n):
    columns = np.zeros(n, dtype=np.int64)
    found = 0
    row = 0
    columns[0] = -1
    while row >= 0:
        columns[row] += 1
        c = columns[row]
        while c < n:
            free = True
            for r in range(row):
                if columns[r] == c or abs(columns[r] - c) == row - r:
                    free = False
                    break
            if free:
                break
            c += 1
        columns[row] = c
        if c >= n:
            row -= 1
        elif row == n - 1:
            found += 1
        else:
            row += 1
            columns[row] = -1
    return found


def rule_30(width, steps):
    cells = np.zeros(width, dtype=np.uint8)
    cells[width // 2] = 1
    after = np.zeros(width, dtype=np.uint8)
    total = 0
    for _ in range(steps):
        for i in range(width):
            left = cells[i - 1]
            right = cells[(i + 1) % width]
            after[i] = left ^ (cells[i] | right)
        for i in range(width):
            cells[i] = after[i]
        total += int(cells[width // 2])
    return total


def matrix_chain(sizes):
    n = len(sizes) - 1
    cost = np.zeros((n, n), dtype=np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = 2**62
            for k in range(i, j):
                c = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if c < cost[i, j]:
                    cost[i, j] = c
    return cost[0, n - 1]


def dijkstra_dense(weights, source):
    n = weights.shape[0]
    distance = np.full(n, np.inf)
    done = np.zeros(n, dtype=np.bool_)
    distance[source] = 0.0
    for _ in range(n):
        best, u = np.inf, -1
        for v in range(n):
            if not done[v] and distance[v] < best:
                best, u = distance[v], v
        if u < 0:
            break
        done[u] = True
        for v in range(n):
            if weights[u, v] > 0 and distance[u] + weights[u, v] < distance[v]:
                distance[v] = distance[u] + weights[u, v]
    return distance


def kmp_count(text, pattern):
    table = [0] * len(pattern)
    k = 0
    for i in range(1, len(pattern)):
        while k > 0 and pattern[i] != pattern[k]:
            k = table[k - 1]
        if pattern[i] == pattern[k]:
            k += 1
        table[i] = k
    found = q = 0
    for c in text:
        while q > 0 and pattern[q] != c:
            q = table[q - 1]
        if pattern[q] == c:
            q += 1
        if q == len(pattern):
            found += 1
            q = table[q - 1]
    return found


def make_runge_kutta(rate):
    def slope(t, y):
        return rate * y * (1.0 - y) - 0.1 * t

    def solve(y, h, steps):
        t = 0.0
        for _ in range(steps):
            k1 = slope(t, y)
            k2 = slope(t + h / 2, y + h * k1 / 2)
            k3 = slope(t + h / 2, y + h * k2 / 2)
            k4 = slope(t + h, y + h * k3)
            y += h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
            t += h
        return y

    return solve


def dither(image):
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            old = image[y, x]
            new = 1.0 if old > 0.5 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < w:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    image[y + 1, x + 1] += error / 16
    return image


def inside_polygon(xs, ys, px, py):
    found = 0
    n = len(xs)
    for k in range(len(px)):
        inside = False
        j = n - 1
        for i in range(n):
            if (ys[i] > py[k]) != (ys[j] > py[k]):
                cut = (xs[j] - xs[i]) * (py[k] - ys[i]) / (ys[j] - ys[i]) + xs[i]
                if px[k] < cut:
                    inside = not inside
            j = i
        if inside:
            found += 1
    return found


def closest_pair(points):
    best = math.inf
    n = len(points)
    for i in range(n):
        for j in range(i + 1, n):
            dx = points[i, 0] - points[j, 0]
            dy = points[i, 1] - points[j, 1]
            best = min(best, dx * dx + dy * dy)
    return math.sqrt(best)


def resize_bilinear(image, height, width):
    h, w = image.shape
    out = np.empty((height, width))
    for y in range(height):
        fy = y * (h - 1) / (height - 1)
        y0 = int(fy)
        y1 = min(y0 + 1, h - 1)
        for x in range(width):
            fx = x * (w - 1) / (width - 1)
            x0 = int(fx)
            x1 = min(x0 + 1, w - 1)
            top = image[y0, x0] * (1 - fx + x0) + image[y0, x1] * (fx - x0)
            bottom = image[y1, x0] * (1 - fx + x0) + image[y1, x1] * (fx - x0)
            out[y, x] = top * (1 - fy + y0) + bottom * (fy - y0)
    return out


def gauss_seidel(u, steps):
    n, m = u.shape
    for _ in range(steps):
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                value = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                change = max(change, abs(value - u[i, j]))
                u[i, j] = value
        if change < 1e-9:
            break
    return u


def longest_increasing(x):
    n = len(x)
    length = np.ones(n, dtype=np.int64)
    best = 0
    for i in range(n):
        for j in range(i):
            if x[j] < x[i] and length[j] + 1 > length[i]:
                length[i] = length[j] + 1
        best = max(best, length[i])
    return best


def _rng():
    return np.random.default_rng(5)


CASES = (
    Case("bubble sort", bubble_sort, lambda: (_rng().random(500),)),
    Case("shell sort, list", shell_sort_list, lambda: (_rng().random(5000).tolist(),)),
    Case("Black-Scholes", black_scholes, lambda: (*(_rng().random((3, 20000)) + 0.5), 0.03, 0.2)),
    Case("Collatz, cache", collatz_cached, lambda: (30000,)),
    Case("totients", totients, lambda: (40000,)),
    Case("amicable numbers", amicable, lambda: (4000,)),
    Case("palindromes", palindromes, lambda: (800, 1000)),
    Case("coin sums", coin_sums, lambda: ((1, 2, 5, 10, 20, 50, 100, 200), 6000)),
    Case("queens", queens, lambda: (7,)),
    Case("rule 30", rule_30, lambda: (301, 150)),
    Case("matrix chain", matrix_chain, lambda: (_rng().integers(1, 60, 70),)),
    Case("Dijkstra, dense", dijkstra_dense, lambda: (_rng().random((200, 200)), 0)),
    Case("KMP", kmp_count, lambda: ("abcababcabcabab" * 2000, "abcabab")),
    Case("Runge-Kutta, closure", make_runge_kutta(1.7), lambda: (0.1, 0.001, 20000)),
    Case("dithering", dither, lambda: (_rng().random((100, 120)),)),
    Case(
        "point in polygon",
        inside_polygon,
        lambda: tuple(_rng().random((2, 40))) + tuple(_rng().random((2, 1500))),
    ),
    Case("closest pair", closest_pair, lambda: (_rng().random((300, 2)),)),
    Case("bilinear", resize_bilinear, lambda: (_rng().random((60, 60)), 110, 130)),
    Case("Gauss-Seidel", gauss_seidel, lambda: (_rng().random((60, 60)), 15)),
    Case("longest increasing", longest_increasing, lambda: (_rng().random(400),)),
)
