"""What was found of one set of predictions, in a form that can be handed over."""

from ._fairness_report import fairness_report
from ._findings import Findings
from ._report import FairnessReport

__all__ = ["FairnessReport", "Findings", "fairness_report"]
