"""Settings of every test run, made before numpy and matplotlib are imported."""

import os
from importlib.util import find_spec

# The tests run in one process for each core; threads of BLAS beside them only get in the way.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Pictures without a screen.
os.environ.setdefault("MPLBACKEND", "Agg")

# Examples that draw need the extra `plot`.
collect_ignore = [] if find_spec("matplotlib") else ["docs/plotting.md", "gedi_sklearn/plotting"]
for package, needs in (("dask", "dask"), ("lagrangian_dual", "torch")):
    if not find_spec(needs):
        collect_ignore.append(f"gedi_sklearn/{package}")
