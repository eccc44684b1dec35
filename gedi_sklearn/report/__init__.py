"""What was found of one set of predictions, in a form that can be handed over."""

from ._findings import Findings
from ._report import FairnessReport, fairness_report

__all__ = ["FairnessReport", "Findings", "fairness_report"]
