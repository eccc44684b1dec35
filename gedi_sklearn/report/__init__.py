"""A report on one set of predictions, for readers who did not build the model."""

from ._findings import Findings
from ._report import FairnessReport, fairness_report

__all__ = ["FairnessReport", "Findings", "fairness_report"]
