"""What stands in the brackets of a display: many items that repeat are written as a repetition, so that
``[None] * 100_000`` is one instruction again and not as many as it has items."""

from __future__ import annotations

_LONG = 64  # shorter displays, and shorter repetitions, are written out
_SHORT_PERIODS = range(1, 9)


def display_items(texts: list[str]) -> str:
    """The items with these expressions, which have no side effects, one after the other."""
    if len(texts) < _LONG:
        return ", ".join(texts)
    periods = [*_SHORT_PERIODS, _period(texts)]
    parts: list[str] = []
    start = 0
    while start < len(texts):
        period, times = _repetition(texts, start, periods)
        if times == 1:
            parts.append(texts[start])
        else:
            parts.append(f"*[{', '.join(texts[start : start + period])}] * {times}")
        start += period * times
    return ", ".join(parts)


def _repetition(texts: list[str], start: int, periods: list[int]) -> tuple[int, int]:
    """How many items from ``start`` on stand there how often: ``(1, 1)`` where nothing repeats for long."""
    for period in periods:
        end = start + period
        while end < len(texts) and texts[end] == texts[end - period]:
            end += 1
        times = (end - start) // period
        if times > 1 and times * period >= _LONG:
            return period, times
    return 1, 1


def _period(texts: list[str]) -> int:
    """After how many items all of them repeat, at the least (Knuth, Morris and Pratt's failure function)."""
    borders = [0] * len(texts)
    length = 0
    for index in range(1, len(texts)):
        while length and texts[index] != texts[length]:
            length = borders[length - 1]
        if texts[index] == texts[length]:
            length += 1
        borders[index] = length
    return len(texts) - length
