"""Real inputs: the handwritten digits shipped here, and the photograph that scikit-image ships."""

from __future__ import annotations

import gzip
import pathlib

import numpy as np

DIGITS = pathlib.Path(__file__).parent / "digits.csv.gz"


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels (1797, 64) as float64 from 0 to 16, and the digit of each image (1797,) as int64."""
    with gzip.open(DIGITS, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",")
    return np.ascontiguousarray(table[:, :64]), table[:, 64].astype(np.int64)


def photograph(quick: bool = False) -> np.ndarray:
    """The astronaut, (512, 512, 3) uint8; every fourth pixel of it when ``quick``."""
    from skimage.data import astronaut

    image = astronaut()
    return np.ascontiguousarray(image[::4, ::4] if quick else image)
