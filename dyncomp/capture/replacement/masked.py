"""Rebuilding masked values (``ArrayRef.kind == "masked"``) where the program needs the array itself."""

from __future__ import annotations

from ...graph.ir import COPY, GraphBuilder, Var

_COPIES = ("copy", "contiguous")


def uncopied(builder: GraphBuilder, var: Var) -> Var:
    """What ``var`` is a copy of, where both still hold the same when the graph has run; else ``var``.

    Reading ``x[m]`` copies ``x`` and ``m``; where nothing was done with either, ``x[m]`` can be computed
    from what the program itself has.
    """
    places = [i for i, node in enumerate(builder.nodes) if node.outputs[:1] == (var,)]
    if not places or builder.nodes[places[0]].op not in _COPIES:
        return var
    source = builder.nodes[places[0]].inputs[0]
    roots = _roots(builder)
    kept = {roots.get(v.name, v.name) for v in (source, var)}
    later = [node.inputs[0].name for node in builder.nodes[places[0] :] if node.op == COPY]
    return var if any(roots.get(name, name) in kept for name in later) else source


def _roots(builder: GraphBuilder) -> dict[str, str]:
    """Of values that are views: the value whose memory they show."""
    roots: dict[str, str] = {}
    for node in builder.nodes:
        if node.op != COPY and builder.table[node.op].is_view:
            base = node.inputs[0].name
            roots[node.outputs[0].name] = roots.get(base, base)
    return roots
