r"""Post-processing: any learner, fitted once, and the exact projection as a function of x.

For real targets the nearest predictions that satisfy a constraint are p + F̃β, so a new row is
corrected by F̃(x)·β. For two classes the projection with multipliers λ assigns row i to class 1
if 1 − 2p_i − P_i·λ < 0: a threshold on the score that depends on x. Both are found on predictions
for rows that the learner has not seen, like those for new rows.

An *attribute-blind* correction does not need the attribute of a new row: it is a function of
m(X) = E[F̃ | X], which a second learner predicts.
"""

from ._classifier import ProjectedClassifier
from ._regressor import ProjectedRegressor

__all__ = ["ProjectedClassifier", "ProjectedRegressor"]
