"""A report on one set of predictions, to be handed over."""

from ._fairness_report import fairness_report
from ._findings import Findings
from ._report import FairnessReport

__all__ = ["FairnessReport", "Findings", "fairness_report"]
