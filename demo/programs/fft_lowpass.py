"""Low-pass filter of a photograph in Fourier space (Butterworth)."""

from __future__ import annotations

import numpy as np

from ..data import photograph


def butterworth_lowpass(image, cutoff, order=2):
    """Filtered image (ny, nx) and the fraction of the spectral energy that was kept."""
    ny, nx = image.shape
    fy = np.fft.fftfreq(ny)[:, None]
    fx = np.fft.rfftfreq(nx)[None, :]
    radius = np.sqrt(fx**2 + fy**2)
    response = 1.0 / (1.0 + (radius / cutoff) ** (2 * order))
    spectrum = np.fft.rfft2(image)
    filtered = spectrum * response
    kept = np.sum(np.abs(filtered) ** 2) / np.sum(np.abs(spectrum) ** 2)
    return np.fft.irfft2(filtered, s=image.shape), kept


def make_inputs(quick):
    return photograph(quick).mean(axis=2), 0.05
