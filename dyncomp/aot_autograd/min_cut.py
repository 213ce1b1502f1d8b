"""Minimum cuts of directed graphs, by the push-relabel method.

Excess flow is pushed from the highest labels towards the sinks; labels are lower bounds of the distance to a
sink. Exact labels are computed at the start and again after as many relabellings as there are nodes; where no
node has a label any more, all nodes above it are cut off (the *gap*). Only the first phase is run: a maximum
*preflow* determines the cut (B. V. Cherkassky, A. V. Goldberg: On implementing the push-relabel method for
the maximum flow problem, Algorithmica 19, 1997). On graphs of programs, which are long and thin, its work is
near to linear.
"""

from __future__ import annotations


class Network:
    """A network of ``count`` nodes. Flow enters with the supplies and leaves without limit at the sinks."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.steps = 0  # arcs that were looked at
        self._supply = [0] * count
        self._is_sink = [False] * count
        # arc 2k and its reverse 2k + 1
        self._ends: list[int] = []
        self._room: list[int] = []
        self._arcs: list[list[int]] = [[] for _ in range(count)]

    def add_supply(self, node: int, amount: int) -> None:
        """Flow enters at ``node``: if that is on the side of the sinks, the cut costs ``amount``."""
        self._supply[node] += amount

    def add_sink(self, node: int) -> None:
        self._is_sink[node] = True

    def add_arc(self, tail: int, head: int, capacity: int) -> None:
        """If ``head`` is on the side of the sinks and ``tail`` is not, the cut costs ``capacity``."""
        self._arcs[tail].append(len(self._ends))
        self._arcs[head].append(len(self._ends) + 1)
        self._ends += (head, tail)
        self._room += (capacity, 0)

    def cut(self) -> list[bool]:
        """For each node whether it is on the side of the sinks in the minimum cut, the one with the smallest
        such side."""
        self._excess = list(self._supply)
        self._relabel_all()
        while self._highest >= 0:
            active = self._active[self._highest]
            if not active:
                self._highest -= 1
                continue
            node = active.pop()
            if self._label[node] == self._highest and self._excess[node]:
                self._discharge(node)
            if self._relabelled >= self.count:
                self._relabel_all()
        self._relabel_all()
        return [label < self.count for label in self._label]

    def _relabel_all(self) -> None:
        """Labels are the distances to a sink along arcs with room; ``count`` where there is no way."""
        count, room, ends = self.count, self._room, self._ends
        label = self._label = [0 if sink else count for sink in self._is_sink]
        reached = [node for node in range(count) if self._is_sink[node]]
        for node in reached:
            further = label[node] + 1
            self.steps += len(self._arcs[node])
            for arc in self._arcs[node]:
                tail = ends[arc]
                if label[tail] == count and room[arc ^ 1]:
                    label[tail] = further
                    reached.append(tail)
        self._relabelled = 0
        self._position = [0] * count  # the arc to look at next
        self._at = [set[int]() for _ in range(count + 1)]  # nodes by label
        self._active: list[list[int]] = [[] for _ in range(count + 1)]
        self._highest = -1
        for node in reached:
            self._at[label[node]].add(node)
            self._activate(node)

    def _activate(self, node: int) -> None:
        label = self._label[node]
        if self._excess[node] and 0 < label < self.count:
            self._active[label].append(node)
            self._highest = max(self._highest, label)

    def _discharge(self, node: int) -> None:
        """Push what is too much at ``node`` on, to nodes that are nearer to a sink."""
        label, room, ends, arcs = self._label, self._room, self._ends, self._arcs[node]
        while self._excess[node]:
            if self._position[node] == len(arcs):
                self._relabel(node)
                if label[node] >= self.count:
                    return
            arc = arcs[self._position[node]]
            self.steps += 1
            head = ends[arc]
            if room[arc] and label[node] == label[head] + 1:
                amount = min(self._excess[node], room[arc])
                room[arc] -= amount
                room[arc ^ 1] += amount
                self._excess[node] -= amount
                self._excess[head] += amount
                if self._excess[head] == amount:
                    self._activate(head)
                if room[arc]:
                    return
            self._position[node] += 1

    def _relabel(self, node: int) -> None:
        old = self._label[node]
        self.steps += len(self._arcs[node])
        heads = [self._label[self._ends[arc]] for arc in self._arcs[node] if self._room[arc]]
        new = min(min(heads, default=self.count) + 1, self.count)
        self._relabelled += 1
        self._position[node] = 0
        self._label[node] = new
        self._at[old].discard(node)
        self._at[new].add(node)
        if not self._at[old]:
            self._cut_off(old)

    def _cut_off(self, gap: int) -> None:
        """No way leads from above ``gap`` to a sink any more."""
        for label in range(gap + 1, self.count):
            if not self._at[label]:
                return
            for node in self._at[label]:
                self._label[node] = self.count
            self._at[label].clear()
