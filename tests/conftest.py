"""Settings of every test run, made before numpy is imported."""

import os

# The tests run in one process for each core; threads of BLAS beside them only get in the way.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
