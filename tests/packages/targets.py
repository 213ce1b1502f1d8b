"""Which packages are compiled and which of their own tests drive them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """``packages``: whose functions are compiled; ``tests``: test modules for ``--pyargs``, or, where
    the package is installed without its tests, files in its unpacked source distribution ``sdist``."""

    name: str
    packages: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = field(default=())
    sdist: str = ""


def _of(name: str, package: str, *tests: str, options: tuple[str, ...] = ()) -> Target:
    return Target(name, (package,), tests, options)


def _skimage(part: str, *tests: str) -> Target:
    files = tuple(f"tests/skimage/{part}/test_{name}.py" for name in tests)
    packages = (f"skimage.{part}", "skimage._shared")
    return Target(f"skimage.{part}", packages, files, ("--noconftest",), "scikit_image")


def _stdlib(*modules: str) -> tuple[Target, ...]:
    return tuple(_of(f"stdlib.{name}", name, f"test.test_{name}") for name in modules)


def _parts(package: str, *parts: str) -> tuple[Target, ...]:
    """Of ``part:file+file``: the part's functions and those files of its tests."""
    found = []
    for part in parts:
        name, _, files = part.partition(":")
        tests = (f"{package}.{name}.tests.test_{file}" for file in files.split("+"))
        found.append(_of(f"{package}.{name}.{files.partition('+')[0]}", f"{package}.{name}", *tests))
    return tuple(found)


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
    _of("scipy.interpolate.fitpack", "scipy.interpolate", "scipy.interpolate.tests.test_fitpack2"),
    _of("scipy.integrate.bvp", "scipy.integrate", "scipy.integrate.tests.test_bvp"),
    _of("scipy.linalg.procrustes", "scipy.linalg", "scipy.linalg.tests.test_procrustes"),
    _of("scipy.optimize.minpack", "scipy.optimize", "scipy.optimize.tests.test_minpack"),
    _of("scipy.signal.upfirdn", "scipy.signal", "scipy.signal.tests.test_upfirdn"),
    _of("scipy.signal.peaks", "scipy.signal", "scipy.signal.tests.test_peak_finding"),
    _of("scipy.sparse.construct", "scipy.sparse", "scipy.sparse.tests.test_construct"),
    _of("scipy.stats.entropy", "scipy.stats", "scipy.stats.tests.test_entropy"),
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
    _skimage("color", "colorconv", "colorlabel", "delta_e", "adapt_rgb"),
    _skimage("exposure", "exposure", "histogram_matching"),
    _skimage("filters", "edges", "gaussian", "median", "ridges", "thresholding", "unsharp_mask", "window"),
    _skimage("transform", "geometric", "integral", "pyramids", "warps", "hough_transform"),
    _skimage("measure", "block", "entropy", "fit", "moments", "profile", "regionprops", "polygon"),
    _skimage("morphology", "binary", "footprints", "gray", "misc", "isotropic", "reconstruction"),
    _skimage("restoration", "restoration", "unwrap", "j_invariant", "denoise"),
    _skimage("metrics", "simple_metrics", "structural_similarity", "segmentation_metrics"),
    _skimage("segmentation", "boundaries", "clear_border", "join", "morphsnakes", "slic", "chan_vese"),
    _skimage("feature", "corner", "peak", "template", "util", "texture", "hog"),
    _skimage("draw", "draw", "draw3d", "draw_nd", "polygon2mask"),
    _skimage(
        "util", "arraycrop", "compare", "dtype", "invert", "montage", "shape", "random_noise", "unique_rows"
    ),
    _skimage("registration", "phase_cross_correlation", "ilk", "tvl1"),
    _of(
        "opt_einsum",
        "opt_einsum",
        *(f"opt_einsum.tests.test_{name}" for name in ("paths", "parser", "input", "blas", "edge_cases")),
    ),
    _of("mpmath", "mpmath", "mpmath.tests.test_basic_ops", "mpmath.tests.test_linalg"),
    _of("sympy.utilities", "sympy.utilities", "sympy.utilities.tests.test_iterables"),
    _of("joblib", "joblib", "joblib.test.test_func_inspect", "joblib.test.test_hashing"),
    *_stdlib("statistics", "fractions", "colorsys", "difflib", "textwrap", "heapq", "bisect", "random"),
    *_stdlib("calendar", "copy", "string", "shlex", "fnmatch", "graphlib", "html", "ipaddress", "json"),
    *_parts("numpy", "lib:arraysetops+nanfunctions", "lib:shape_base+twodim_base+index_tricks+type_check"),
    *_parts("numpy", "lib:histograms+arraypad+stride_tricks+polynomial+ufunclike", "lib:recfunctions+io"),
    *_parts("numpy", "_core:numeric", "_core:shape_base+function_base+einsum", "_core:arrayprint+records"),
    *_parts("numpy", "ma:core", "ma:old_ma+subclassing+mrecords", "matrixlib:defmatrix+masked_matrix"),
    *_parts("numpy", "fft:pocketfft+helper"),
    *_parts("sklearn", "neighbors:neighbors+kde+lof+nca", "svm:svm+bounds", "tree:tree+export"),
    *_parts("sklearn", "mixture:gaussian_mixture+bayesian_mixture", "manifold:mds+locally_linear+isomap"),
    *_parts(
        "sklearn", "model_selection:split+validation", "model_selection:search", "decomposition:pca+fastica"
    ),
    *_parts("sklearn", "ensemble:forest+voting", "ensemble:gradient_boosting+weight_boosting+iforest"),
    *_parts("sklearn", "linear_model:ridge+logistic", "linear_model:least_angle+omp+huber+bayes+ransac"),
    *_parts("sklearn", "covariance:covariance+robust_covariance", "cross_decomposition:pls"),
    *_parts("sklearn", "gaussian_process:gpr+kernels", "impute:impute+knn", "inspection:partial_dependence"),
    *_parts("sklearn", "feature_selection:rfe+from_model+chi2", "feature_extraction:text+image"),
    *_parts("sklearn", "neural_network:mlp+rbm", "preprocessing:encoders+label+polynomial+discretization"),
    *_parts("sklearn", "cluster:hierarchical+dbscan+mean_shift+spectral", "metrics:classification+pairwise"),
    *_parts("sklearn", "utils:validation+multiclass", "utils:sparsefuncs+class_weight+random+stats+pprint"),
    *_parts("sklearn", "compose:column_transformer+target", "semi_supervised:label_propagation"),
    Target("sklearn.pipeline", ("sklearn.pipeline", "sklearn.base"), ("sklearn.tests.test_pipeline",)),
    *_parts("scipy", "interpolate:bsplines", "interpolate:rbfinterp+rgi+interpolate", "signal:signaltools"),
    *_parts(
        "scipy", "signal:fir_filter_design+cont2discrete+dltisys+czt+short_time_fft", "stats:multivariate"
    ),
    *_parts(
        "scipy", "stats:distributions", "stats:hypotests+resampling+variation+rank+correlation", "stats:qmc"
    ),
    *_parts("scipy", "stats:mstats_basic+binned_statistic+survival+fit", "optimize:linprog+milp+lsq_linear"),
    *_parts("scipy", "optimize:slsqp+nonlin+trustregion+linesearch+_numdiff+constraints+_root"),
    *_parts("scipy", "optimize:_differential_evolution+_basinhopping+_shgo+cobyla+minimize_constrained"),
    *_parts("scipy", "linalg:basic+decomp_cholesky+decomp_ldl+decomp_polar", "ndimage:interpolation"),
    *_parts(
        "scipy", "ndimage:measurements+morphology+fourier", "sparse:base", "sparse:csr+coo+sputils+extract"
    ),
    *_parts(
        "scipy", "special:logsumexp+spfun_stats+spherical_bessel+sph_harm", "integrate:_quad_vec+tanhsinh"
    ),
    *_parts(
        "scipy", "sparse.linalg:interface+matfuncs+onenormest+expm_multiply", "differentiate:differentiate"
    ),
    *_parts(
        "scipy", "spatial:_procrustes+slerp+spherical_voronoi+hausdorff", "fftpack:basic+helper+pseudo_diffs"
    ),
    *_parts("scipy", "odr:odr", "io:mmio+wavfile", "constants:constants+codata"),
    _of("mpmath.functions", "mpmath", "mpmath.tests.test_functions", "mpmath.tests.test_calculus"),
)
