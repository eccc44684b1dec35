"""The experiments of the paper, and timings of the library; run from the root of a clone."""
