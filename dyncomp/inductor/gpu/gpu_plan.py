"""The plan of a graph on a GPU: joined steps as alternatives, and library calls that have routines there."""

from __future__ import annotations

from ...dataclass import dataclass, field
from ...dtypes import DType
from ...errors import LoweringError
from ...prims.table import TABLE
from ...symbolic.integers import Dim
from ..fusion.epilogue import Item, RowGroup, target_of
from ..fusion.fuse import LibraryCall
from ..launch import PyCallStep
from ..lowering.values import Storage
from ..planning import Planner
from ..schedule import Alternatives, Step
from .convolution import convolved, detail_of
from .join_kernels import JoinedChain, JoinedConvolution, JoinedProduct, rows_of


@dataclass
class DevicePlanner(Planner):
    """``private``: slots of what only the alternative of several steps needs memory for, while it is
    planned."""

    private: dict[int, int] = field(default_factory=dict)

    def number(self, storage: Storage) -> int:
        found = self.private.get(id(storage))
        return super().number(storage) if found is None else found

    def _item(self, item: Item) -> None:
        if isinstance(item, JoinedConvolution):
            self._convolution(item)
        elif isinstance(item, JoinedProduct):
            self._product(item)
        elif isinstance(item, JoinedChain):
            self._attention(item)
        elif isinstance(item, RowGroup):
            self._rows(item)
        elif isinstance(item, LibraryCall) and item.kind == "blas":
            product = self._blas(item)
            self.current.append(Alternatives(product, (product,)))
        else:
            super()._item(item)

    def _product(self, item: JoinedProduct) -> None:
        fused = self._blas(item.call, item.tiled)
        private = self._keep_private([target_of(item.call)] if item.tiled.private else [])
        plain = (self._blas(item.call), self._kernel(item.whole))
        self.current.append(Alternatives(fused, plain, private))
        self.private.clear()

    def _convolution(self, item: JoinedConvolution) -> None:
        fused = convolved(item.call, self._multiply(item.call, detail_of(item.call), item.tiled))
        private = self._keep_private([target_of(item.call)] if item.tiled.private else [])
        plain = (self._routine(item.call), self._kernel(item.whole))
        self.current.append(Alternatives(fused, plain, private))
        self.private.clear()

    def _attention(self, item: JoinedChain) -> None:
        fused = self._chain(item)
        held = [item.tiled.storages[k] for k in (item.tiled.source, item.tiled.sink)]
        private = self._keep_private(held)
        plain = (self._blas(item.first), self._kernel(item.whole), self._blas(item.second))
        self.current.append(Alternatives(fused, plain, private))
        self.private.clear()

    def _rows(self, item: RowGroup) -> None:
        fused = rows_of(item, self.number)
        private = self._keep_private(list(item.matrices))
        plain: list[Step] = []
        for member in item.members:
            if isinstance(member.item, LibraryCall):
                plain.append(self._blas(member.item))
            else:
                assert member.whole is not None
                plain.append(self._kernel(member.whole))
        self.current.append(Alternatives(fused, tuple(plain), private))
        self.private.clear()

    def _keep_private(self, storages: list[Storage]) -> tuple[tuple[DType, Dim], ...]:
        self.private = {id(s): -1 - k for k, s in enumerate(storages)}
        return tuple((s.dtype, s.size) for s in storages)

    def _routine(self, call: LibraryCall) -> PyCallStep:
        value = call.value
        assert value.row is not None
        if value.row.ref is TABLE[value.row.name].ref:
            raise LoweringError(f"{value.row.name} has no routine on a GPU")
        return super()._routine(call)
