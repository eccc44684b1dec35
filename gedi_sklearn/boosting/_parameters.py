"""What a package may be told through `backend_params`: a table for each, with reasons.

The gradients come from the constraint and the rounds from this library, so that parameters of a
built-in loss, of the loop and of files have no effect, and those that change finished trees make
the scores of the ascent others than those of `predict`. All of them are refused, as is what a
package does not know: both drop it in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._validation import InvalidParameterError

_OWN = (
    "which this estimator does itself. Leave it out; learning_rate, n_jobs, n_estimators and "
    "early_stopping_rounds are its own parameters"
)
_OF_A_LOSS = (
    "which belongs to a built-in loss and has no effect: the gradients are those of the "
    "constraint. Leave it out; rows are weighted by sample_weight"
)
_OF_FINISHED_TREES = (
    "which changes trees that are finished, so that the multipliers would ascend on other scores "
    "than `predict` returns. Leave it out"
)


def refuse_backend_object(owner: str, backend: Any, names: list[str]) -> None:
    """Refuse a model in the place of the name of its package, in one line.

    Raises
    ------
    InvalidParameterError
    """
    if not isinstance(backend, str):
        kind = backend.__name__ if isinstance(backend, type) else type(backend).__name__
        raise InvalidParameterError(
            f"The 'backend' parameter of {owner} must be a str among {names}. Got {kind} "
            "instead. The package grows the trees: pass its name, and parameters as backend_params."
        )


class Table(NamedTuple):
    """The parameters of a package.

    Attributes
    ----------
    package : str
        Its name.
    names : callable
        Returns the one name of a parameter by each of its names.
    taken : str
        What has an effect here, name by name.
    refused : dict of str to str
        What has not, or may not have one, by the reason.
    values : dict of str to dict of str to str
        Of some parameters the values that are refused, with the reason.
    needs : dict of str to tuple of str
        Of some parameters the others, one of which has to be set for an effect.
    """

    package: str
    names: Callable[[], Mapping[str, str]]
    taken: str
    refused: dict[str, str]
    values: dict[str, dict[str, str]]
    needs: dict[str, tuple[str, ...]]

    def check(self, given: dict[str, Any], columns: Iterable[Any] = ()) -> dict[str, Any]:
        """Return parameters by their one name.

        Parameters
        ----------
        given : dict
            The caller's.
        columns : iterable, default=()
            Names or positions of the columns that the trees see.

        Raises
        ------
        ValueError
            If a parameter is unknown, has no effect, is set twice or has no such value.
        """
        checked: dict[str, Any] = {}
        for key, value in given.items():
            name = self._one_name(key)
            if name in checked:
                raise ValueError(
                    f"backend_params sets {name!r} by two of its names. Leave one out."
                )
            self._check_value(key, name, value)
            checked[name] = _by_position(key, value, columns) if name in _OF_COLUMNS else value
        for key in given:
            others = self.needs.get(self._one_name(key))
            if others and not any(checked.get(other) for other in others):
                raise ValueError(
                    f"backend_params sets {key!r}, which has no effect without "
                    f"{' or '.join(others)}. Set that as well, or leave it out."
                )
        return checked

    def _one_name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise ValueError(f"backend_params must have names as keys, text; got {key!r}.")
        name = self.names().get(key, key)
        taken = self.taken.split()
        if name in taken:
            return name
        reasons = (reason for reason, names in self.refused.items() if name in names.split())
        if reason := next(reasons, None):
            raise ValueError(f"backend_params sets {key!r}, {reason}.")
        near = get_close_matches(key, taken, n=1)
        raise ValueError(
            f"backend_params sets {key!r}, which is no parameter of {self.package} that has an "
            f"effect here. {f'Did you mean {near[0]!r}?' if near else 'Leave it out.'}"
        )

    def _check_value(self, key: str, name: str, value: Any) -> None:
        if reason := self.values.get(name, {}).get(str(value)):
            raise ValueError(f"backend_params sets {key}={value!r}, {reason}.")
        if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
            raise ValueError(
                f"backend_params sets {key}={value!r}, which {self.package} would ignore or take "
                "for a number. Give a finite value, or leave it out."
            )


# Time and line of C++ before a message of XGBoost.
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")


_OF_COLUMNS = ("monotone_constraints", "interaction_constraints")


def _by_position(key: str, value: Any, columns: Iterable[Any]) -> list[Any]:
    """Return what is stated about columns, by their names or positions, as lists of positions."""
    numbers = {name: position for position, name in enumerate(columns)}
    n = len(numbers)
    if key == "interaction_constraints":
        groups: Any = value if isinstance(value, (list, tuple)) else [None]
        if not all(isinstance(group, (list, tuple, set)) for group in groups):
            raise ValueError(
                f"backend_params sets {key}={value!r}, which must be a list of lists of columns."
            )
        return [[_position(key, column, numbers) for column in group or ()] for group in groups]
    signs = [0] * n
    if isinstance(value, Mapping):
        for column, sign in value.items():
            signs[_position(key, column, numbers)] = sign
    else:
        signs = value.tolist() if isinstance(value, np.ndarray) else value
    known = isinstance(signs, (list, tuple)) and all(sign in (-1, 0, 1) for sign in signs)
    if not known or len(signs) != n:
        raise ValueError(
            f"backend_params sets {key}={value!r}, which must hold -1, 0 or 1 for each of the {n} "
            "columns that the trees see, or be a dictionary of these by column."
        )
    return [int(sign) for sign in signs]


def _position(key: str, column: Any, numbers: dict[Any, int]) -> int:
    if column in numbers:
        return numbers[column]
    if isinstance(column, (int, np.integer)) and 0 <= column < len(numbers):
        return int(column)
    raise ValueError(
        f"backend_params sets {key}, which names column {column!r}; the trees see "
        f"{list(numbers)[:10]}{', ...' if len(numbers) > 10 else ''}."
    )


@contextmanager
def refusals_named(package: str, given: dict[str, Any] | None) -> Iterator[None]:
    """Turn the errors of a package into a ValueError that names `backend_params`."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] != package:
            raise
        text = _PLACE.sub("", str(error).partition("Stack trace")[0].strip())
        where = f"backend_params={given}" if given else "the rows or parameters"
        raise ValueError(f"{package} refuses {where}: {text}") from error


def _xgboost_names() -> dict[str, str]:
    return {
        "learning_rate": "eta",
        "lambda": "reg_lambda",
        "alpha": "reg_alpha",
        "min_split_loss": "gamma",
        "random_state": "seed",
        "n_jobs": "nthread",
    }


XGBOOST = Table(
    package="XGBoost",
    names=_xgboost_names,
    taken=(
        "booster colsample_bylevel colsample_bynode colsample_bytree device gamma grow_policy "
        "interaction_constraints max_bin max_cached_hist_node max_cat_threshold "
        "max_cat_to_onehot max_delta_step max_depth max_leaves min_child_weight "
        "monotone_constraints multi_strategy num_parallel_tree reg_alpha reg_lambda "
        "sampling_method seed seed_per_iteration subsample tree_method verbosity"
    ),
    refused={
        _OWN: (
            "base_score early_stopping_rounds eta eval_metric n_estimators nthread "
            "num_boost_round num_class num_round objective"
        ),
        _OF_A_LOSS: (
            "aft_loss_distribution aft_loss_distribution_scale expectile_alpha huber_slope "
            "quantile_alpha scale_pos_weight tweedie_variance_power"
        ),
        _OF_FINISHED_TREES: (
            "normalize_type one_drop process_type rate_drop refresh_leaf sample_type skip_drop "
            "updater"
        ),
    },
    values={"booster": {"dart": _OF_FINISHED_TREES, "gblinear": "which grows no trees"}},
    needs={},
)


@cache
def _lightgbm_names() -> dict[str, str]:
    from lightgbm.basic import _ConfigAliases

    listed = _ConfigAliases._get_all_param_aliases()
    return {alias: name for name, aliases in listed.items() for alias in (name, *aliases)}


LIGHTGBM = Table(
    package="LightGBM",
    names=_lightgbm_names,
    taken=(
        "bagging_fraction bagging_freq bagging_seed bin_construct_sample_cnt boosting cat_l2 "
        "cat_smooth cegb_penalty_feature_coupled cegb_penalty_feature_lazy cegb_penalty_split "
        "cegb_tradeoff data_random_seed data_sample_strategy deterministic device_type "
        "enable_bundle extra_seed extra_trees feature_contri feature_fraction "
        "feature_fraction_bynode feature_fraction_seed feature_pre_filter force_col_wise "
        "force_row_wise forcedbins_filename forcedsplits_filename gpu_device_id gpu_platform_id "
        "gpu_use_dp histogram_pool_size interaction_constraints is_enable_sparse lambda_l1 "
        "lambda_l2 linear_lambda linear_tree max_bin max_bin_by_feature max_cat_threshold "
        "max_cat_to_onehot max_delta_step max_depth min_data_in_bin min_data_in_leaf "
        "min_data_per_group min_gain_to_split min_sum_hessian_in_leaf monotone_constraints "
        "monotone_constraints_method monotone_penalty num_grad_quant_bins num_leaves other_rate "
        "path_smooth quant_train_renew_leaf seed stochastic_rounding top_rate use_missing "
        "use_quantized_grad verbosity zero_as_missing"
    ),
    refused={
        _OWN: (
            "boost_from_average early_stopping_min_delta early_stopping_round first_metric_only "
            "learning_rate metric metric_freq num_class num_iterations num_threads objective"
        ),
        _OF_A_LOSS: (
            "alpha fair_c is_unbalance neg_bagging_fraction objective_seed "
            "poisson_max_delta_step pos_bagging_fraction reg_sqrt scale_pos_weight sigmoid "
            "tweedie_variance_power"
        ),
        _OF_FINISHED_TREES: (
            "drop_rate drop_seed max_drop refit_decay_rate skip_drop uniform_drop xgboost_dart_mode"
        ),
        "which is ignored there. Make the columns categories of a frame": "categorical_feature",
    },
    values={"boosting": dict.fromkeys(("dart", "rf", "random_forest"), _OF_FINISHED_TREES)},
    needs={
        "bagging_fraction": ("bagging_freq",),
        "bagging_freq": ("bagging_fraction",),
        "linear_lambda": ("linear_tree",),
        "monotone_constraints_method": ("monotone_constraints",),
        "monotone_penalty": ("monotone_constraints",),
        "num_grad_quant_bins": ("use_quantized_grad",),
        "other_rate": ("boosting", "data_sample_strategy"),
        "quant_train_renew_leaf": ("use_quantized_grad",),
        "stochastic_rounding": ("use_quantized_grad",),
        "top_rate": ("boosting", "data_sample_strategy"),
    },
)
