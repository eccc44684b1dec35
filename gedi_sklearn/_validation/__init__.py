"""Checks of the caller's arguments, and the only imports of scikit-learn's private names.

Values are matched to rows by position, as everywhere in scikit-learn: the index of a pandas
object is ignored. Nothing is dropped, cast from text, or filled in. :mod:`._scorer` is apart, since
it loads all of :mod:`sklearn.metrics`.
"""

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
)
from sklearn.utils._response import _get_response_values
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import (
    _check_feature_names,
    _check_feature_names_in,
    _check_method_params,
    _check_n_features,
    _check_response_method,
    _get_feature_names,
    _num_samples,
)

from ._arrays import (
    are_whole,
    as_plain,
    check_column,
    check_labels,
    check_numbers,
    check_numbers_or_inf,
    check_same_length,
    check_sample_weight,
    is_missing,
    is_plain,
    is_text,
)
from ._attribute import (
    Level,
    attribute_columns,
    change_tables,
    check_attribute,
    check_attribute_columns,
    check_group_codes,
    check_groups,
    check_levels,
    check_sensitive,
    column_positions,
    drop_columns,
    holds_other_rows,
    refuse_mixed_levels,
    select_columns,
    take_rows,
    warn_many_groups,
)
from ._parameters import (
    N_JOBS,
    NOTION_PARAMETERS,
    check_changed,
    check_keywords,
    check_nested,
    check_notion,
    declared_ranges,
    named_in_errors,
    refuse_misplaced,
    remember_signature,
    validate_params,
)
from ._targets import (
    CLASS_LOSSES,
    REAL_LOSSES,
    Outcomes,
    Targets,
    check_all_weighted,
    check_bounds,
    check_classes,
    check_multiplied,
    check_positive,
    target_kind,
)
