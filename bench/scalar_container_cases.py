"""Programs of loops with heaps and lists, and with functions that write to arrays, written to see what is
compiled of such."""

from __future__ import annotations

import heapq

import numpy as np

from .scalar_cases import Case


def dijkstra_heap(indptr, indices, weights, source):
    n = len(indptr) - 1
    dist = np.full(n, np.inf)
    dist[source] = 0.0
    heap = [(0.0, source)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist[u]:
            continue
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            nd = d + weights[k]
            if nd < dist[v]:
                dist[v] = nd
                heapq.heappush(heap, (nd, v))
    return dist


def swap(a, i, j):
    t = a[i]
    a[i] = a[j]
    a[j] = t


def permutations_heap(n):
    a = np.arange(n)
    c = np.zeros(n, dtype=np.int64)
    total = 0
    i = 0
    while i < n:
        if c[i] < i:
            if i % 2 == 0:
                swap(a, 0, i)
            else:
                swap(a, c[i], i)
            total += a[0] * a[n - 1]
            c[i] += 1
            i = 0
        else:
            c[i] = 0
            i += 1
    return total


def sift_down(a, start, end):
    root = start
    while 2 * root + 1 <= end:
        child = 2 * root + 1
        if child + 1 <= end and a[child] < a[child + 1]:
            child += 1
        if a[root] < a[child]:
            a[root], a[child] = a[child], a[root]
            root = child
        else:
            return


def heap_sort(a):
    n = len(a)
    for start in range((n - 2) // 2, -1, -1):
        sift_down(a, start, n - 1)
    for end in range(n - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        sift_down(a, 0, end - 1)
    return a


def partition_count(n):
    p = [0] * (n + 1)
    p[0] = 1
    for k in range(1, n + 1):
        for j in range(k, n + 1):
            p[j] = (p[j] + p[j - k]) % 998244353
    return p[n]


def roman(n_max):
    values = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
    total = 0
    for n in range(1, n_max):
        rest = n
        for v in values:
            while rest >= v:
                rest -= v
                total += 1
    return total


def run_lengths(bits):
    runs = []
    count = 1
    for i in range(1, len(bits)):
        if bits[i] == bits[i - 1]:
            count += 1
        else:
            runs.append(count)
            count = 1
    runs.append(count)
    return max(runs), sum(runs), len(runs)


def primes_below(n):
    primes = []
    k = 2
    while k < n:
        ok = True
        for p in primes:
            if p * p > k:
                break
            if k % p == 0:
                ok = False
                break
        if ok:
            primes.append(k)
        k += 1
    return len(primes), sum(primes)


def levenshtein_rows(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a):
        cur = [i + 1]
        for j, cb in enumerate(b):
            cur.append(min(prev[j + 1] + 1, cur[j] + 1, prev[j] + (ca != cb)))
        prev = cur
    return prev[-1]


def gray(n):
    total = 0
    for i in range(n):
        g = i ^ (i >> 1)
        bits = 0
        while g:
            g &= g - 1
            bits += 1
        total += bits
    return total


def _rng():
    return np.random.default_rng(7)


def _graph(nodes=3000, degree=4):
    count = nodes * degree
    return np.arange(0, count + 1, degree), _rng().integers(0, nodes, count), _rng().random(count)


_TEXTS = ("kitten sitting on the bench " * 8, "sitting kitten at the beach " * 8)
CASES = (
    Case("Dijkstra, heap", dijkstra_heap, lambda: (*_graph(), 0)),
    Case("permutations, swap", permutations_heap, lambda: (8,)),
    Case("heap sort, function", heap_sort, lambda: (_rng().random(5000),)),
    Case("partitions, list", partition_count, lambda: (400,)),
    Case("roman numerals", roman, lambda: (4000,)),
    Case("run lengths, list", run_lengths, lambda: (_rng().integers(0, 2, 30000).tolist(),)),
    Case("primes, list searched", primes_below, lambda: (20000,)),
    Case("Levenshtein, lists", levenshtein_rows, lambda: _TEXTS),
    Case("Gray codes", gray, lambda: (30000,)),
)
