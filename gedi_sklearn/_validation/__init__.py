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
    _check_method_params,
    _check_n_features,
    _check_response_method,
    _get_feature_names,
    _num_samples,
)

from ._arrays import (
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
    check_attribute,
    check_attribute_columns,
    check_group_codes,
    check_groups,
    check_levels,
    check_sensitive,
    refuse_mixed_levels,
    warn_many_groups,
)
from ._classes import check_all_weighted, check_classes
from ._columns import (
    change_tables,
    column_positions,
    drop_columns,
    holds_other_rows,
    select_columns,
    take_rows,
)
from ._outcomes import NOTION_PARAMETERS, Outcomes, check_notion
from ._parameters import (
    N_JOBS,
    check_keywords,
    check_nested,
    declared_ranges,
    named_in_errors,
    refuse_misplaced,
    remember_signature,
    validate_params,
)
from ._targets import (
    CLASS_LOSSES,
    REAL_LOSSES,
    Targets,
    check_bounds,
    check_multiplied,
    check_positive,
    target_kind,
)
