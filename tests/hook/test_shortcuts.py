"""Guard programs that take shortcuts answer as the same guards do that are run one by one.

A tree of objects, dictionaries, lists and tuples is guarded whole, changed in many ways and put back.
"""

import builtins
import collections
import gc
import random

import numpy as np
import pytest

from dyncomp.capture.guards.fact_kinds import NoOverlap
from dyncomp.capture.guards.guard import Guard, compile_guards
from dyncomp.capture.guards.source import InstanceDictSource, ItemSource, LocalSource
from dyncomp.hook import _hook


class Node:
    pass


class Other(Node):
    pass


def tree(rng, depth):
    """A node with attributes of all kinds."""
    node = Node()
    node.number, node.text, node.truth, node.nothing = rng.randrange(1000, 9999), "text", True, None
    node.ordered = collections.OrderedDict()
    node.pairs = {"a": object(), "b": rng.random(), 3: "three"}
    node.sequence = [object(), 1.5, Node()]
    node.fixed = (object(), "x", 7)
    node.children = {}
    if depth:
        node.children = {name: tree(rng, depth - 1) for name in ("left", "right")}
    if rng.random() < 0.8:
        vars(node)  # a dictionary, as most modules have one
    return node


def guards_of(node, source, made):
    """Guards of everything in a tree."""

    def add(where, kind, expected):
        made.append(Guard(where, kind, expected))

    add(source, "TYPE_IS", Node)
    add(source, "INSTANCE_LACKS", "absent")
    names = ("number", "text", "truth", "nothing", "ordered", "pairs", "sequence", "fixed", "children")
    for name, value in [(name, getattr(node, name)) for name in names]:
        where = InstanceDictSource(source, name)
        add(where, "TYPE_IS", type(value))
        if type(value) in (int, str, bool, float):
            add(where, "EQUALS", value)
        elif type(value) in (dict, list, tuple, collections.OrderedDict):
            add(where, "LEN", (type(value), len(value)))
        if type(value) is dict:
            add(where, "DICT_KEYS", tuple(value))
            add(where, "DICT_LACKS", "absent")
        if type(value) in (dict, list, tuple):
            items = value.items() if type(value) is dict else enumerate(value)
            for key, item in items:
                if type(item) is Node and type(value) is dict:
                    guards_of(item, ItemSource(where, key), made)
                else:
                    add(ItemSource(where, key), "IS", item)
    return made


class World:
    """A tree, its guards, and the program whose shortcuts are tried."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.root = tree(self.rng, 2)
        self.guards = guards_of(self.root, LocalSource("root", 0), [])
        self.program = compile_guards(self.guards, [InstanceDictSource(LocalSource("root", 0), "number")])

    def check(self):
        fresh = compile_guards(self.guards, [InstanceDictSource(LocalSource("root", 0), "number")])
        env = ((self.root,), globals(), vars(builtins))
        expected = fresh.read(*env)
        assert self.program.read(*env) == expected
        assert self.program.check(*env) == (expected is not None)
        return expected is not None

    def nodes(self):
        found, left = [], [self.root]
        while left:
            node = left.pop()
            found.append(node)
            left += node.children.values()
        return found


def set_attribute(rng, node):
    name = rng.choice(["number", "text", "truth", "nothing", "children", "pairs", "fixed", "ordered"])
    old = getattr(node, name)
    setattr(node, name, rng.choice([None, 5, {}, "other", (), Node()]))
    return lambda: setattr(node, name, old)


def equal_attribute(rng, node):
    """Another object with the same contents."""
    old = node.pairs, node.sequence, node.number
    node.pairs, node.sequence, node.number = dict(node.pairs), list(node.sequence), int(str(node.number))
    return lambda: vars(node).update(pairs=old[0], sequence=old[1], number=old[2])


def add_attribute(rng, node):
    node.absent = 1
    return lambda: delattr(node, "absent")


def unrelated_attribute(rng, node):
    node.counter = rng.random()
    return lambda: None


def by_namespace(rng, node):
    old = node.text
    vars(node)["text"] = "other"
    return lambda: vars(node).update(text=old)


def another_namespace(rng, node):
    old = node.__dict__
    node.__dict__ = dict(old) if rng.random() < 0.5 else {**old, "text": "other"}

    def undo():
        node.__dict__ = old

    return undo


def another_class(rng, node):
    node.__class__ = Other

    def undo():
        node.__class__ = Node

    return undo


def set_item(rng, node):
    key = rng.choice(list(node.pairs))
    old = node.pairs[key]
    node.pairs[key] = rng.choice([old, None, object()])
    return lambda: node.pairs.__setitem__(key, old)


def add_item(rng, node):
    rng.choice([node.pairs, node.ordered, node.children])["absent"] = 1

    def undo():
        for held in (node.pairs, node.ordered, node.children):
            held.pop("absent", None)

    return undo


def emptied(rng, node):
    old = dict(node.pairs)
    rng.choice([node.pairs.clear, lambda: node.pairs.pop("a"), node.pairs.popitem])()

    def undo():
        node.pairs.clear()
        node.pairs.update(old)

    return undo


def other_order(rng, node):
    old = dict(node.pairs)
    node.pairs["a"] = node.pairs.pop("a")

    def undo():
        node.pairs.clear()
        node.pairs |= old

    return undo


def list_item(rng, node):
    old = node.sequence[0]
    node.sequence[0] = object()
    return lambda: node.sequence.__setitem__(0, old)


def longer_list(rng, node):
    node.sequence.append(1)
    return node.sequence.pop


def another_child(rng, node):
    """One that often lies where the old one was."""
    if not node.children:
        return lambda: None
    name = rng.choice(list(node.children))
    old = vars(node.children.pop(name)).copy()
    gc.collect()
    new = Node()
    vars(new).update(old)
    new.text = rng.choice(["text", "other"])
    rest = dict(node.children)
    node.children.clear()
    node.children.update({key: new if key == name else rest[key] for key in ("left", "right")})
    return lambda: setattr(new, "text", "text")


CHANGES = [
    set_attribute, equal_attribute, add_attribute, unrelated_attribute, by_namespace, another_namespace,
    another_class, set_item, add_item, emptied, other_order, list_item, longer_list, another_child,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_changes(seed):
    world = World(seed)
    assert all(world.check() for _ in range(4)) and world.program.steps is not None
    held = 0
    for _ in range(120):
        for _ in range(world.rng.choice([1, 2, 4])):
            held += world.check()
        undo = world.rng.choice(CHANGES)(world.rng, world.rng.choice(world.nodes()))
        world.check()
        undo()
    assert held > 100


def test_a_counter_beside_what_is_guarded():
    """What changes between any two calls is looked at again; the rest is not."""
    world = World(0)
    for k in range(60):
        world.root.counter = k
        assert world.check()
    assert world.program.steps is not None


def test_an_argument_that_changes():
    """Two trees in turn, as methods of one class have them."""
    first, second = World(1), World(1)
    second.guards = guards_of(second.root, LocalSource("root", 0), [])
    for k in range(60):
        root = (first if k % 2 else second).root
        found = first.program.check((root,), globals(), vars(builtins))
        assert found == (root is first.root)


def test_programs_that_read_are_called():
    world = World(2)
    sources = [ItemSource(InstanceDictSource(LocalSource("root", 0), "sequence"), k % 3) for k in range(60)]
    sources += [InstanceDictSource(LocalSource("root", 0), name) for name in vars(world.root)]
    program = compile_guards((), sources)
    for _ in range(8):
        found = program(world.root)
        assert found == (*[world.root.sequence[k % 3] for k in range(60)], *vars(world.root).values())
        world.root.sequence[1] = object()
        world.root.pairs = {}
    del world.root.pairs
    with pytest.raises(LookupError):
        program(world.root)
    assert isinstance(program, _hook.GuardProgram)


def test_arrays_that_must_not_overlap():
    """The check has its registers in a tuple; some are known, some are read anew."""
    root = tree(random.Random(3), 2)
    place = LocalSource("root", 0)
    vars(root)["array"] = np.zeros(8)
    guards = guards_of(root.children["left"], ItemSource(InstanceDictSource(place, "children"), "left"), [])
    arrays = (InstanceDictSource(place, "array"), LocalSource("other", 1))
    guards.append(Guard(None, "NO_OVERLAP", NoOverlap(arrays, (0,))))
    program = compile_guards(guards, arrays)
    for k in range(40):
        other = root.array[2:4] if k % 3 == 0 else np.zeros(2)
        found = program.read((root, other), globals(), vars(builtins))
        assert (found is None) == (k % 3 == 0)
        assert found is None or (found[0] is root.array and found[1] is other)
    assert program.steps is not None
