# ruff: noqa: E501
"""Statements of random programs about arrays: writes through views, ``out=``, ``where=``, masks, dtypes, overlapping
operands and sizes that are computed; see ``random_features``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .random_classes import breaking

Writer = Any
Lines = list[str]


def views_of_views(w: Writer) -> Lines:
    return [
        f"base = {w.pick('g * 1.0', 'np.arange(12.0).reshape(3, 4)', 'g', 'np.arange(24).reshape(2, 3, 4)', 'a.copy()')}",
        f"part = base{w.pick('[1:]', '[..., ::-1]', '.T', '[::2]', '[:, None]', '.reshape(-1)', '[..., 1:3]', '[-1]', '.swapaxes(0, -1)', '[:n]')}",
        f"deeper_ = part{w.pick('[...]', '[1:]', '[::-1]', '.T', '.ravel()', '[None]', '.view()', '.squeeze()')}",
        w.pick("deeper_ += 1", "deeper_[...] = n", "part *= 2", "np.add(deeper_, part, out=part)", "base[...] = 0", "deeper_[..., :1] = f"),
        breaking(w),
        w.pick("base += part.size", "deeper_[deeper_ > 2] = m", "part[...] = part[::-1]", "np.multiply(base, 2, out=base)", "pass"),
        f"out.append(({w.pick('base', 'base * 1')}, {w.pick('part', 'deeper_', 'part.sum(axis=0)')}, part.base is None, {w.pick('deeper_.flags.c_contiguous', 'np.shares_memory(base, deeper_)', '[s for d, s in zip(deeper_.shape, deeper_.strides) if d != 1]', 'deeper_.flags.writeable')}))",
    ]  # fmt: skip


def overlapping(w: Writer) -> Lines:
    x = w.pick("a", "b", "c")
    return [
        w.pick(f"{x}[1:] = {x}[:-1]", f"{x}[:-1] += {x}[1:]", f"{x}[1:] *= {x}[:-1]", f"{x}[::-1] += {x}", f"{x}[...] = {x}[::-1] + 1"),
        w.pick(f"np.add({x}, {x}[::-1], out={x})", f"np.cumsum({x}, out={x})", f"{x} -= {x}.mean()", f"{x} /= {x}.max() or 1", f"{x}[[0, 0, -1]] += 1", f"np.add.at({x}, [0, 0], n)"),
        breaking(w),
        f"out.append(({x}.copy(), {w.pick('a is b', f'{x}[0]', f'{x}.argmax()', 'np.may_share_memory(a, b)')}))",
    ]  # fmt: skip


def results_given(w: Writer) -> Lines:
    return [
        f"room = {w.pick('np.zeros_like(a)', 'np.zeros(len(a))', 'np.zeros(len(a), np.float32)', 'a.copy()', 'np.zeros((2, len(a)))[0]')}",
        "try:",
        f"    got = {w.pick('np.multiply(a, n, out=room)', 'np.add(a, b, room)', 'np.maximum(a, b, out=room, where=a > 0)', 'np.cumsum(b, out=room)', 'np.sqrt(np.abs(a), out=room)', 'np.clip(a, -1, f, out=room)', 'np.subtract(a, b, out=(room,))', 'np.round(a, 1, out=room)', 'np.take(a, [0] * len(a), out=room)')}",
        "    out.append((got is room, got))",
        "except (TypeError, ValueError) as e:",
        "    out.append(type(e).__name__)",
        breaking(w),
        w.pick("a = room", "room += 1; out.append(room)", "b = b + room", "out.append(room.dtype)"),
    ]


def kinds(w: Writer) -> Lines:
    return [
        f"low = a.astype({w.pick('np.float32', repr('i4'), 'np.int16', 'bool', 'complex', 'np.uint8', repr('f2'), 'int')})",
        "try:",
        f"    low {w.pick('+=', '*=', '-=', '//=', '|=', '**=')} {w.pick('n', 'f', 'low', '1.5', 'True', 'np.int64(m)', 'np.float32(2)')}",
        "except TypeError as e:",
        "    out.append(type(e).__name__)",
        breaking(w),
        f"out.append((low, {w.pick('low.dtype', 'low + f', 'low * n', 'low.sum()', 'low.mean()', 'low + a', 'low @ low', 'low > 0', '-low if low.dtype != bool else ~low')}))",
        f"out.append({w.pick('np.result_type(low, n)', 'low.astype(a.dtype)', 'low.view(np.uint8).size', 'np.asarray(low, dtype=float) / 2', 'low.tolist()[:1]', 'low.item(0)', 'np.promote_types(low.dtype, np.int8)')})",
    ]


def masked_writes(w: Writer) -> Lines:
    return [
        f"pick = {w.pick('a > b', 'a != a', '(a > 0) | (b < n)', 'np.array([True] * len(a))', 'g.sum(axis=1) > n', 'np.zeros(len(a), bool)')}",
        "try:",
        f"    {w.pick('a[pick] = b[pick]', 'a[pick] += c[pick] * n', 'b[~pick] = f', 'g[pick] = n', 'g[pick, 0] = 7', 'a[pick] = range(int(pick.sum()))', 'np.putmask(a, pick, c)', 'np.copyto(a, b, where=pick)', 'a[np.where(pick)] = m', 'a[pick][:1] = 9')}",
        f"    kept = a[pick]; {w.pick('kept += 1', 'kept[:1] = n', 'kept = kept * 2', 'pass', 'kept.sort()')}",
        f"    out.append(({w.pick('kept', 'kept.sum()', 'kept.shape', 'len(kept)', 'np.append(kept, n)')}, a.copy()))",
        "except (ValueError, IndexError) as e:",
        "    out.append(type(e).__name__)",
        breaking(w),
        w.pick("c = np.where(pick, c, a)", "out.append(np.count_nonzero(pick))", "out.append(pick.argmax())", "out.append(np.flatnonzero(pick))", "if pick.any(): n += 1"),
    ]  # fmt: skip


def computed_sizes(w: Writer) -> Lines:
    return [
        f"many = {w.pick('len(a) + n % 4', 'abs(n) % 5 + 1', 'a.size * 2 - 1', 'max(n, 1)', 'int(np.count_nonzero(a > 0))', 'len(out) % 6')}",
        "try:",
        f"    grown = {w.pick('np.zeros(many)', 'np.arange(many) * f', 'np.resize(a, many)', 'np.tile(a, many)', 'np.full((many, 2), n)', 'np.eye(many)[0]', 'np.repeat(a, many)', 'np.linspace(0, 1, many)', 'np.concatenate([a, np.ones(many)])')}",
        "    " + breaking(w),
        f"    grown = {w.pick('grown.reshape(-1, many)', 'grown[: many // 2]', 'grown[many:]', 'grown[::-1] + grown', 'grown[..., None] + a', 'np.split(grown, [many // 2])[1]', 'np.roll(grown, many)', 'grown.T')}",
        f"    out.append(({w.pick('grown', 'grown.sum()', 'grown.shape', 'grown.mean(axis=0)')}, many))",
        f"    if grown.shape[0] {w.pick('>', '==', '<')} {w.pick('many', 'len(a)', '3')}: n += 1",
        f"    {w.pick('for row in grown: out.append(row)', 'a = a + len(grown)', 'out.extend(grown[:2])', 'first, *rest = grown')}",
        "except (ValueError, IndexError, TypeError) as e:",
        "    out.append(type(e).__name__)",
    ]


def arrays_in_objects(w: Writer) -> Lines:
    return [
        f"held = {w.pick('[a, a, b]', '(a, a[1:])', '{chr(120): a, chr(121): a}', '[a] * 2', 'Stack(a, b, a).items')}",
        f"key = {w.pick('0', '-1', '1')} if not isinstance(held, dict) else 'x'",
        "try:",
        f"    {w.pick('held[key] += 1', 'held[key][0] = n', 'held[key] = held[key] * 2', 'held[key][...] = b', 'held[key] -= held[key]')}",
        "except TypeError as e:",
        "    out.append(str(e)[:30])",
        breaking(w),
        f"out.append((held, {w.pick('held[key] is a', 'a.copy()', 'len(held)')}))",
        f"obj.value = held[key]; obj.value {w.pick('+=', '*=')} {w.integer()}",
        "out.append((obj.value is a, a.sum()))",
    ]


ARRAY_FEATURES: tuple[Callable[[Writer], Lines], ...] = (
    views_of_views,
    overlapping,
    results_given,
    kinds,
    masked_writes,
    computed_sizes,
    arrays_in_objects,
)
