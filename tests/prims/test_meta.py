"""Every row's ``meta`` against its reference: dtype, shape and strides."""

from __future__ import annotations

import pytest

from .framework import check_type, infer, rows, run_ref, samples_of

# rows whose result's memory order is dyncomp's own choice (C order), not NumPy's
OWN_ORDER: frozenset[str] = frozenset()


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in rows() if not r.is_marker])
def test_meta_agrees_with_reference(row):
    samples = samples_of(row.name)
    assert samples, f"{row.name} has no samples"
    for sample in samples:
        try:
            types = infer(row, sample)
            arrays = run_ref(row, sample)
            assert len(types) == len(arrays)
            for array, type_ in zip(arrays, types):
                check_type(array, type_, strides=row.name not in OWN_ORDER)
        except Exception as error:
            raise AssertionError(f"{row.name} {sample.label}: {error}") from error
