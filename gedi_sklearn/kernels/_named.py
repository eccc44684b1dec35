"""The parameter `kernel`: a degree, a name, an object, a callable or a matrix."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.base import clone

from .._validation import HasMethods, Interval, StrOptions, as_plain, check_numbers
from ._transformers import NAMED_KERNELS, FourierKernel, PolynomialKernel

# The declared range of a parameter `kernel` that takes no precomputed matrix.
KERNEL_CONSTRAINTS: list[Any] = [
    Interval(Integral, 1, None, closed="left"),
    StrOptions(set(NAMED_KERNELS)),
    HasMethods(["fit", "transform"]),
    callable,
]
_QUOTED_NAMES = ", ".join(map(repr, NAMED_KERNELS))


def resolve_kernel(kernel: Any) -> Any:
    """Return an unfitted kernel object, a callable or a float matrix from the `kernel` parameter.

    An integer is the polynomial kernel of that degree.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter of the kernel is out of its range.
    """
    if isinstance(kernel, str):
        if kernel not in NAMED_KERNELS:
            raise ValueError(f"kernel={kernel!r} is unknown; use {_QUOTED_NAMES} or an object.")
        return NAMED_KERNELS[kernel].type()
    if is_degree(kernel):
        return PolynomialKernel(int(kernel))
    # Checked before "transform", which data frames have as well.
    if hasattr(kernel, "__array__") or isinstance(kernel, (list, tuple)):
        return check_numbers(kernel, "kernel")
    if hasattr(kernel, "transform"):
        kernel = clone(kernel)
        if is_named_type(kernel):
            try:
                kernel._validate_params()  # its `fit` does not within another checked call
            except ValueError as error:  # a plain one: scikit-learn's is renamed on its way
                raise ValueError(f"kernel={kernel!r}: {error}") from error
        return kernel
    if callable(kernel):
        return kernel
    raise ValueError(
        f"kernel must be {_QUOTED_NAMES}, a transformer, a callable or a matrix; got {kernel!r}."
    )


def is_degree(kernel: Any) -> bool:
    """Tell whether a kernel is an integer, the polynomial of that degree."""
    return isinstance(kernel, Integral) and not isinstance(kernel, bool)


def is_named_type(kernel: Any) -> bool:
    """Tell whether a kernel object is of a type that has a name."""
    return any(isinstance(kernel, named.type) for named in NAMED_KERNELS.values())


def kernel_of_degree(kernel: Any, degree: int) -> Any:
    """Return the same kernel at another degree; one without a degree as it is.

    Parameters
    ----------
    kernel : transformer, callable or array
        What :func:`resolve_kernel` returns.
    degree : int
        The degree (order).

    Returns
    -------
    transformer, callable or array

    Raises
    ------
    ValueError
        If a degree other than 1 is asked of a kernel that has a name and no degree.
    """
    for name, named in NAMED_KERNELS.items():
        if not isinstance(kernel, named.type):
            continue
        if named.degree is not None:
            return clone(kernel).set_params(**{named.degree: degree})
        if degree != 1:
            raise ValueError(
                f"relative={degree} asks for the indicator at degree {degree}, which a {name} "
                "kernel does not have. Use relative=True, a share of its own indicator."
            )
    return kernel


def describe_kernel(kernel: Any) -> str:
    """Return a kernel in words, for descriptions of estimators and constraints.

    Parameters
    ----------
    kernel : int, str, transformer or callable
        The parameter `kernel`.

    Returns
    -------
    str

    Examples
    --------
    >>> from gedi_sklearn.kernels import PolynomialKernel, describe_kernel
    >>> describe_kernel(3)
    'polynomial kernel of degree 3'
    >>> describe_kernel(PolynomialKernel(5, standardize=True))
    'polynomial kernel of degree 5, standardised'
    """
    if isinstance(kernel, str) or is_degree(kernel):
        kernel = resolve_kernel(kernel)
    if isinstance(kernel, PolynomialKernel):
        scale = ", standardised" if kernel.standardize else ""
        return f"polynomial kernel of degree {kernel.degree}{scale}"
    if isinstance(kernel, FourierKernel):
        period = "" if kernel.period is None else f", period {kernel.period:g}"
        return f"Fourier kernel of order {kernel.order}{period}"
    return "spline kernel" if repr(kernel) == "SplineKernel()" else f"kernel {kernel!r}"


def kernel_to_dict(kernel: Any) -> Any:
    """Return a kernel as text, numbers and lists, for JSON.

    Raises
    ------
    TypeError
        If it is an object of another library, or a callable.
    """
    if isinstance(kernel, str) or is_degree(kernel):
        return as_plain(kernel)
    for name, named in NAMED_KERNELS.items():
        if isinstance(kernel, named.type):
            parameters = kernel.get_params()  # type: ignore[attr-defined]
            return {"name": name, **{key: as_plain(own) for key, own in parameters.items()}}
    raise TypeError(
        f"to_dict writes kernels that have a name, got kernel={kernel!r}. Pickle the accumulator."
    )


def kernel_from_dict(state: Any) -> Any:
    """Return the kernel that :func:`kernel_to_dict` has written."""
    if isinstance(state, (str, int)):
        return state
    parameters = dict(state)
    return NAMED_KERNELS[parameters.pop("name")].type(**parameters)
