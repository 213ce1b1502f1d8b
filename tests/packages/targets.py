"""Which packages are compiled and which of their own tests drive them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """``packages``: whose functions are compiled; ``tests``: test modules for pytest's ``--pyargs``."""

    name: str
    packages: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = field(default=())


def _of(name: str, package: str, *tests: str, options: tuple[str, ...] = ()) -> Target:
    return Target(name, (package,), tests, options)


TARGETS: tuple[Target, ...] = (
    _of("scipy.signal.windows", "scipy.signal", "scipy.signal.tests.test_windows"),
    _of("scipy.signal.filter_design", "scipy.signal", "scipy.signal.tests.test_filter_design"),
    _of("scipy.signal.waveforms", "scipy.signal", "scipy.signal.tests.test_waveforms"),
    _of("scipy.signal.wavelets", "scipy.signal", "scipy.signal.tests.test_wavelets"),
    _of("scipy.signal.savitzky_golay", "scipy.signal", "scipy.signal.tests.test_savitzky_golay"),
    _of("scipy.signal.ltisys", "scipy.signal", "scipy.signal.tests.test_ltisys"),
    _of("scipy.signal.spectral", "scipy.signal", "scipy.signal.tests.test_spectral"),
    _of("scipy.integrate", "scipy.integrate", "scipy.integrate.tests.test_quadrature"),
    _of("scipy.integrate.ivp", "scipy.integrate", "scipy.integrate._ivp.tests.test_ivp"),
    _of("scipy.interpolate", "scipy.interpolate", "scipy.interpolate.tests.test_polyint"),
    _of("scipy.linalg", "scipy.linalg", "scipy.linalg.tests.test_special_matrices"),
    _of("scipy.linalg.matfuncs", "scipy.linalg", "scipy.linalg.tests.test_matfuncs"),
    _of("scipy.optimize", "scipy.optimize", "scipy.optimize.tests.test_optimize"),
    _of("scipy.optimize.zeros", "scipy.optimize", "scipy.optimize.tests.test_zeros"),
    _of("scipy.optimize.lsq", "scipy.optimize", "scipy.optimize.tests.test_least_squares"),
    _of("scipy.special", "scipy.special", "scipy.special.tests.test_orthogonal"),
    _of("scipy.special.basic", "scipy.special", "scipy.special.tests.test_basic"),
    _of("scipy.stats.morestats", "scipy.stats", "scipy.stats.tests.test_morestats"),
    _of("scipy.stats.stats", "scipy.stats", "scipy.stats.tests.test_stats"),
    _of("scipy.stats.contingency", "scipy.stats", "scipy.stats.tests.test_contingency"),
    _of("scipy.spatial.distance", "scipy.spatial.distance", "scipy.spatial.tests.test_distance"),
    _of("scipy.ndimage", "scipy.ndimage", "scipy.ndimage.tests.test_filters"),
    _of(
        "scipy.cluster", "scipy.cluster", "scipy.cluster.tests.test_vq", "scipy.cluster.tests.test_hierarchy"
    ),
    _of("scipy.fft", "scipy.fft", "scipy.fft.tests.test_helper", "scipy.fft.tests.test_basic"),
    _of("sklearn.metrics", "sklearn.metrics", "sklearn.metrics.tests.test_regression"),
    _of("sklearn.metrics.ranking", "sklearn.metrics", "sklearn.metrics.tests.test_ranking"),
    _of("sklearn.preprocessing", "sklearn.preprocessing", "sklearn.preprocessing.tests.test_data"),
    _of("sklearn.utils", "sklearn.utils", "sklearn.utils.tests.test_extmath"),
    _of("sklearn.linear_model", "sklearn.linear_model", "sklearn.linear_model.tests.test_base"),
    _of("sklearn.decomposition", "sklearn.decomposition", "sklearn.decomposition.tests.test_nmf"),
    _of("sklearn.cluster", "sklearn.cluster", "sklearn.cluster.tests.test_k_means"),
    _of("networkx.algorithms", "networkx.algorithms", "networkx.algorithms.tests"),
    _of("networkx.classes", "networkx.classes", "networkx.classes.tests"),
    _of("networkx.linalg", "networkx.linalg", "networkx.linalg.tests"),
    _of("networkx.generators", "networkx.generators", "networkx.generators.tests"),
    _of("networkx.utils", "networkx.utils", "networkx.utils.tests"),
    _of("numpy.lib", "numpy.lib", "numpy.lib.tests.test_function_base"),
    _of("numpy.polynomial", "numpy.polynomial", "numpy.polynomial.tests"),
    _of("numpy.linalg", "numpy.linalg", "numpy.linalg.tests.test_linalg"),
    _of("numpy.ma", "numpy.ma", "numpy.ma.tests.test_extras"),
)
