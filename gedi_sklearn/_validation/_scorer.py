"""The base of scikit-learn's scorers."""

from sklearn.metrics._scorer import _BaseScorer as BaseScorer

__all__ = ["BaseScorer"]
