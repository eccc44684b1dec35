"""The data sets of the paper's experiments and its running example."""

from ._generators import make_running_example
from ._loaders import load_adult, load_communities

__all__ = ["load_adult", "load_communities", "make_running_example"]
