"""Generalized Disparate Impact (GeDI) for scikit-learn: measure it, constrain it."""

__version__ = "0.1.0"

__all__ = ["__version__"]
