"""The data sets of the paper's experiments and its running example."""

from ._datasets import load_adult, load_communities, make_running_example

__all__ = ["load_adult", "load_communities", "make_running_example"]
