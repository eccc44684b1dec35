"""A report on one set of predictions, to be handed over."""

from ._findings import Findings
from ._report import FairnessReport, fairness_report

__all__ = ["FairnessReport", "Findings", "fairness_report"]
