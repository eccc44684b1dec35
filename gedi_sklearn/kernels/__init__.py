r"""Kernels of the protected attribute, and all of their numerics.

A kernel turns the attribute x into columns F, one for each function f_j whose influence is
measured. With W the weights, scaled to sum 1, and F̃ the weighted centring of F, the coefficients
of a target z are the weighted least-squares solution

.. math:: \tilde\alpha(z) = (\tilde F^T W \tilde F)^{-1} \tilde F^T W z .

Powers of raw ages or years are nearly parallel, so F̃ itself is never formed for a polynomial.
Three bases span the same columns, and everything is computed in the last one:

* raw, :math:`\tilde F`: coefficients :math:`\tilde\alpha`, the ones that users see;
* standardised, :math:`\tilde B = \tilde F T`: the same functions of (x − mean) / sd, with
  coefficients :math:`s = T^{-1} \tilde\alpha`;
* orthonormal, :math:`Q = \tilde B R^{-1}` with :math:`Q^T W Q = I`: coordinates
  :math:`c = R s = Q^T W z`.

T and its inverse are known in closed form (binomial expansion), R comes from a QR factorisation
over blocks of rows, so that the state is O(k²) whatever the number of rows.
"""

from .._validation import is_text as is_categorical
from ._columns import AttributeEncoder, warn_many_levels
from ._design import BaseDesign, Design
from ._fit import (
    fit_codes,
    fit_groups,
    fit_kernel,
    fit_resolved,
    list_columns,
    warn_attribute_scale,
)
from ._fitted import FittedKernel
from ._group_sums import sums_of
from ._indicators import GroupColumns, IndicatorKernel
from ._moments import BLOCK, row_blocks
from ._sums import Sums
from ._transformers import (
    KERNEL_CONSTRAINTS,
    NAMED_KERNELS,
    FourierKernel,
    PolynomialKernel,
    SplineKernel,
    describe_kernel,
    is_degree,
    kernel_from_dict,
    kernel_of_degree,
    kernel_to_dict,
    resolve_kernel,
)

__all__ = ["NAMED_KERNELS", "FittedKernel", "FourierKernel", "PolynomialKernel", "SplineKernel"]
