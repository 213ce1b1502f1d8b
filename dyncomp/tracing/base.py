"""A function's graph as an object that can be called and read."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..errors import GraphError, LoweringError, ToolchainError, Unsupported
from ..frontends.base import ArrayOwner
from ..graph.ir import ArrayType, Graph, GraphInput, OpTable, Var, array_type, contiguous_strides, verify
from ..graph.passes.dce import eliminate_dead_code
from ..graph.text import print_graph
from ..options import Options, make_options
from ..pipeline import op_table, run_pipeline
from . import arguments
from .code import python_code
from .front import Front, assembled, inputs_in
from .normal import identifier, unused_inputs, with_input, without_inputs
from .views import GraphValue, Index, Nodes

log = logging.getLogger("dyncomp.tracing")


class GraphBase:
    """What :class:`~dyncomp.tracing.function.GraphFunction` is without what changes nodes."""

    def __init__(
        self,
        name: str,
        graph: Graph,
        front: Front,
        constants: Mapping[str, tuple[str, Any]],
        owner: ArrayOwner | None,
    ) -> None:
        """``constants``: for each input of the graph that is one its name and value."""
        self.__name__ = name
        self._graph = graph
        self._front = front
        self._bound = {var: constant for var, (constant, _) in constants.items()}
        self._arrays = dict(constants.values())
        self._lifted: dict[str, tuple[str, str]] = {}  # by input: the parameter, and the constant's name
        self._owner = owner
        self._options = make_options(options={"warm_start": False})
        self._call: Callable[..., Any] | None = None
        self._index: Index | None = None
        self._signature: inspect.Signature | None = None
        self._plan: arguments.Plan | None = None

    @property
    def _front(self) -> Front:
        return self._shown

    @_front.setter
    def _front(self, front: Front) -> None:
        """How the function looks from outside."""
        self._shown = front
        self._returned = inputs_in(front.tree)
        self._forget()

    def _forget(self) -> None:
        """Constants, or which of the inputs are, changed."""
        self._index = self._signature = self._plan = None

    # -- calling --------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inputs, integers = self._read(args, kwargs)
        if self._plan is None:
            known = {var: self._arrays[name] for var, name in self._bound.items()}
            self._plan = arguments.Plan(self._graph, known, self._owner, self.__name__)
        ordered = self._plan.ordered(inputs, integers)
        if self._call is None:
            self._call = self._compiled(ordered)
        results = self._call(*ordered, *integers)
        count = sum(not out.hidden for out in self._graph.outputs)
        outputs = (results,) if count == 1 else results
        if self._returned:
            inputs |= {var: self._arrays[name] for var, name in self._bound.items() if var in self._returned}
        return assembled(self._front.tree, outputs, inputs)

    @property
    def __signature__(self) -> inspect.Signature:
        parameters = [*self._front.parameters]
        extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name, _ in self._lifted.values()]
        last = len(parameters)
        if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
            last -= 1
        return inspect.Signature([*parameters[:last], *extra, *parameters[last:]])

    def compile(
        self,
        *,
        mode: str = "default",
        backend: str | Callable[..., Any] = "inductor",
        options: Mapping[str, Any] | None = None,
    ) -> Self:
        """How calls run from now on, as for :func:`dyncomp.compile`. Returns this object."""
        given = {"warm_start": False, **(options or {})}
        self._options = make_options(mode=mode, backend=backend, options=given)
        self._call = None
        return self

    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """The inputs that callers give by name, and the integers."""
        if self._signature is None:
            self._signature = self.__signature__
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        lifted = {var: given.pop(parameter) for var, (parameter, _) in self._lifted.items()}
        inputs, integers = self._front.read(given)
        inputs.update(lifted)
        return inputs, integers

    def _compiled(self, examples: Sequence[Any]) -> Callable[..., Any]:
        try:
            return run_pipeline(self._graph, self._options, examples, self._owner).call
        except (Unsupported, LoweringError, ToolchainError):
            if self._options.strict or self._options.backend == "eager":
                raise
            log.warning("the graph of %s runs uncompiled", self.__name__, exc_info=True)
            eager = Options(backend="eager", warm_start=False)
            return run_pipeline(self._graph, eager, examples, self._owner).call

    # -- reading --------------------------------------------------------------------------------
    @property
    def graph(self) -> Graph:
        """The graph itself, which is never changed (``dyncomp/graph/ir.py``): constants are inputs of it."""
        return self._graph

    @property
    def nodes(self) -> Nodes:
        """The operations in order, each with its producers, users and line of the program."""
        return Nodes(self.index)

    @property
    def inputs(self) -> tuple[GraphValue, ...]:
        """The arrays that callers give."""
        values = [GraphValue(self.index, inp.var) for inp in self._graph.inputs]
        return tuple(value for value in values if not value.constant)

    @property
    def outputs(self) -> tuple[GraphValue, ...]:
        """The arrays of the result."""
        return tuple(GraphValue(self.index, out.var) for out in self._graph.outputs if not out.hidden)

    @property
    def constants(self) -> Constants:
        """Arrays that the function found elsewhere than in its arguments, by name (``"layers.0.weight"``).
        They are the program's own, no copies; assigning replaces one in this graph only."""
        return Constants(self)

    @property
    def code(self) -> str:
        """Python source of the graph: a function of its inputs and constants, run by NumPy. ``exec`` it."""
        return python_code(self._graph, self.__name__)

    @property
    def table(self) -> OpTable:
        """The rows of the ops by name."""
        return op_table(self._owner)

    @property
    def owner(self) -> ArrayOwner | None:
        """How arrays are read and made; ``None``: they are NumPy's."""
        return self._owner

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = Index(self._graph, self._bound)
        return self._index

    def value(self, name: str) -> GraphValue:
        """The value of this name. Raises ``KeyError``."""
        return GraphValue(self.index, self.index.vars[name])

    def __str__(self) -> str:
        return print_graph(self._graph)

    def __repr__(self) -> str:
        parameters = str(self.__signature__)
        counts = f"{len(self.nodes)} nodes, {len(self._arrays)} constants"
        return f"<graph of {self.__name__}{parameters}: {counts}>"

    # -- changing -------------------------------------------------------------------------------
    def copy(self) -> Self:
        """Another object with the same graph and the same constant arrays."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._bound, made._arrays, made._lifted = dict(self._bound), dict(self._arrays), dict(self._lifted)
        return made

    def lift(self, name: str, parameter: str = "") -> str:
        """Make a constant an argument, by keyword. Returns the parameter's name. Raises ``KeyError``."""
        var = self._var_of(name)
        taken = [p.name for p in self.__signature__.parameters.values()]
        parameter = parameter or identifier(name, taken, {})
        if not parameter.isidentifier() or parameter in taken:
            raise GraphError(f"{self.__name__}: {parameter!r} is no name for a new parameter")
        del self._bound[var]
        del self._arrays[name]
        self._lifted[var] = (parameter, name)
        self._forget()
        return parameter

    def bind(self, parameter: str, value: Any) -> str:
        """Make an argument that was lifted a constant again. Returns the constant's name. Raises ``KeyError``
        for what is no such parameter, ``TypeError`` for another type of array."""
        lifted = {known: (var, name) for var, (known, name) in self._lifted.items()}
        if parameter not in lifted:
            raise KeyError(f"{self.__name__} has no lifted parameter {parameter!r}")
        var, name = lifted[parameter]
        value = self._checked_constant(var, value)
        del self._lifted[var]
        self._bound[var] = name
        self._arrays[name] = value
        self._forget()
        return name

    # -- for the package ------------------------------------------------------------------------
    def _var_of(self, name: str) -> str:
        for var, constant in self._bound.items():
            if constant == name:
                return var
        known = ", ".join(self._arrays) or "none"
        raise KeyError(f"{self.__name__} has no constant {name!r}; there are: {known}")

    def _checked_constant(self, var: str, value: Any) -> Any:
        inp = self.index.inputs[var]
        if inp.kind != "array":
            if not arguments.is_number(value):
                raise TypeError(f"{inp.label or var} is a number, not {type(value).__name__}")
            return value
        if self._owner is not None and isinstance(value, np.ndarray):
            value = self._owner.from_numpy(value)
        probe = replace(self._graph, inputs=(inp,), mutations=(), symbols=())
        return arguments.checked(probe, [value], (), self._owner, self.__name__)[0]

    def _take(self, graph: Graph, constants: Mapping[str, tuple[str, Any]]) -> None:
        """Use another graph, whose new inputs are ``constants``; what nothing reads any more goes."""
        table = self.table
        graph = eliminate_dead_code(graph, table)
        bound = {**self._bound, **{var: name for var, (name, _) in constants.items()}}
        unused = unused_inputs(graph) & bound.keys() - inputs_in(self._front.tree)
        graph = verify(without_inputs(graph, unused), table)
        arrays = {**self._arrays, **dict(constants.values())}
        self._bound = {var: name for var, name in bound.items() if var not in unused}
        self._arrays = {name: arrays[name] for name in self._bound.values()}
        self._graph, self._call = graph, None
        self._forget()


class Constants(MutableMapping[str, Any]):
    """The constants of a graph by name. Assigning checks dtype and shape; deleting is not possible."""

    def __init__(self, function: GraphBase) -> None:
        self._function = function

    def __getitem__(self, name: str) -> Any:
        self._function._var_of(name)
        return self._function._arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        var = self._function._var_of(name)
        self._function._arrays[name] = self._function._checked_constant(var, value)
        self._function._forget()

    def __delitem__(self, name: str) -> None:
        raise TypeError("a constant goes when nothing reads it: lift it to an argument, or edit the graph")

    def __iter__(self) -> Iterator[str]:
        return iter(self._function._arrays)

    def __len__(self) -> int:
        return len(self._function._arrays)

    def value(self, name: str) -> GraphValue:
        """The value in the graph that a constant is."""
        return self._function.value(self._function._var_of(name))

    def __repr__(self) -> str:
        owner = self._function._owner
        rows = [f"{name}: {arguments.describe(value, owner)}" for name, value in self.items()]
        return f"<constants {', '.join(rows)}>"


def new_constant(
    graph: Graph, name: str, value: Any, owner: ArrayOwner | None, taken: Sequence[str], table: OpTable
) -> tuple[Graph, Var, str]:
    """``graph`` with an input more for a constant array, its value, and the constant's name, which differs
    from those ``taken``."""
    found = name
    for count in itertools.count(2):
        if found not in taken:
            break
        found = f"{name}_{count}"
    dtype, shape, strides = arguments.type_of(value, owner)
    type = array_type(_dtype(dtype), shape, graph.device)
    if strides != contiguous_strides(shape):
        type = ArrayType(type.dtype, shape, strides, type.device)
    names = [var.name for var in graph.values()]
    var = Var(identifier(found, names, table), type)
    return with_input(graph, GraphInput(var, "array", found)), var, found


def _dtype(name: str) -> Any:
    from ..dtypes import BY_NAME

    if name not in BY_NAME:
        raise TypeError(f"a graph holds no arrays of {name}")
    return BY_NAME[name]
