"""Scikit-learn estimator of linear rehearsal: it predicts outcomes, and decides what to set.

    X      n rows of context and actions; y, their outcomes, (n,) or (n, q)
    predict(X)          the mean outcomes of such a context after setting such actions
    decide(contexts)    the actions to set, so that the outcomes fall into the region; NaN where nothing is
                        recommended

The model is the linear Gaussian one of `decision=care`, of the graph in which the context precedes the
actions, these precede the outcomes, and everything that precedes something may affect it. Columns that are no
actions are context: whatever was observed before the actions and affects both them and the outcomes belongs
into X. A variable that the actions affect does not. It works in `clone`, pipelines and searches over
parameters; a pipeline that scales the columns decides in the scaled units.

Array-likes are read by the rules of tables from files (`data.tables.in_memory`, and `number_faults` of
`data.tables.reader`): dates, bytes, texts, names that occur twice, and values beyond what can be computed
with are refused in one paragraph, with the column and the row. Arrays of numbers are left to scikit-learn,
which checks their shape; its messages and NumPy's get the name of the argument.

Source: Qin et al. (2025b), Eq. 8 (the linear method); Buitinck et al. (2013) for the interface.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.rehearsal_task import MIN_ROWS, RehearsalTask
from rehearsal_torch.data.size_limits import bounded, check_seed, whole
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import data_frame, row_count
from rehearsal_torch.data.tables.reader import TableError, number_faults, numbers_of
from rehearsal_torch.files.schema import listed
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import MAX_DRAWS, LinearStructural
from rehearsal_torch.training.surrogate_fit import fit

Bounds = tuple[float | None, float | None]


class RehearsalDecider(RegressorMixin, BaseEstimator):
    """A linear model of outcomes that decides which actions to set; without a region it only predicts.

    Args:
        actions: The columns of X that may be set, by name or place; None takes the last one.
        region: The desired (lower, upper), or those of outcomes by name or place; None for an open side.
        bounds: What an action may be set to, by name or place, (lower, upper); of others the observed range.
        draws: Number of draws of the parameters, for the intervals of decisions.
        level: Coverage probability of these.
        seed: Seed of the draws.
    """

    def __init__(
        self,
        actions: Sequence[str | int] | None = None,
        region: Bounds | Mapping[str | int, Bounds] | None = None,
        bounds: Mapping[str | int, tuple[float, float]] | None = None,
        draws: int = 48,
        level: float = 0.95,
        seed: int = 0,
    ) -> None:
        self.actions, self.region, self.bounds = actions, region, bounds
        self.draws, self.level, self.seed = draws, level, seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fits context and actions X, (n, p), n >= 10, and outcomes y, (n,) or (n, q); or ValueError."""
        self._validate_parameters()
        outcomes = _outcome_names(y)
        inputs_given, outcomes_given = numeric(X, "X"), y if y is None else numeric(y, "y")
        with spoken("X and y"):
            rules = {"multi_output": True, "y_numeric": True, "ensure_min_samples": MIN_ROWS}
            inputs, targets = validate_data(self, inputs_given, outcomes_given, dtype=np.float64, **rules)
        self._single = targets.ndim == 1
        targets = np.asarray(targets, dtype=np.float64).reshape(len(inputs), -1)
        columns = list(getattr(self, "feature_names_in_", [f"x{k}" for k in range(inputs.shape[1])]))
        names = [str(name) for name in columns]
        outcomes = [
            name if name not in names else f"outcome {k}"
            for k, name in enumerate(outcomes or [f"y{k}" for k in range(targets.shape[1])])
        ]
        computable(inputs, names, "X", varying=True)
        computable(targets, outcomes, "y", varying=True)
        self._decides = self.region is not None
        action_names = (
            names[-1:] if self.actions is None else [_column(key, names, "actions") for key in self.actions]
        )
        self._actions = tuple(name for name in names if name in action_names)
        self.task_ = self._task(names, outcomes, inputs)
        values = torch.from_numpy(np.concatenate((inputs, targets), 1))
        with torch.random.fork_rng(devices=[]):
            self.surrogate_ = fit(
                LinearStructural(self.task_, draws=int(self.draws), seed=int(self.seed)),
                Table.observed((*names, *outcomes), values),
            )
        return self

    def _task(self, names: Sequence[str], outcomes: Sequence[str], inputs: np.ndarray) -> RehearsalTask:
        context = [name for name in names if name not in self._actions]
        parents = {name: [*context, *self._actions[:k]] for k, name in enumerate(self._actions)}
        parents |= {name: [*context, *self._actions] for name in outcomes}
        column = dict(zip(names, inputs.T, strict=True))
        box: dict[str, Any] = {
            name: [float(column[name].min()), float(column[name].max())] for name in self._actions
        }
        for action, bounds in (self.bounds or {}).items():
            box[_column(action, self._actions, "bounds")] = bounds
        # A task has a region, on which this fit does not depend; without one, nothing is decided.
        region = (None, 0.0) if self.region is None else self.region
        region = region if isinstance(region, Mapping) else {0: region}
        limits = {_column(key, outcomes, "region"): ends for key, ends in region.items()}
        return RehearsalTask.of(
            {
                "graph": {"parents": parents, "bidirected": [list(outcomes)] if len(outcomes) > 1 else []},
                "context": context,
                "box": box,
                "region": {
                    name: (None, None) if limits.get(name) is None else limits[name] for name in outcomes
                },
                "candidates": [list(self._actions)],
            },
            "RehearsalDecider",
        )

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The mean outcomes after setting the actions, (n,) or (n, q) as in `fit`, from X, (n, p)."""
        check_is_fitted(self)
        numbers = numeric(X, "X")
        with spoken("X"):
            # A copy: the array may be read-only.
            values = np.array(validate_data(self, numbers, dtype=np.float64, reset=False))
        computable(values, [f"column {k}" for k in range(values.shape[1])], "X")
        inputs = torch.from_numpy(values)
        response = self.surrogate_.response(self._actions)
        context, actions = (inputs[:, self._columns(names)] for names in (self.task_.context, self._actions))
        means: np.ndarray = (response.base(context) + actions @ response.action.mT).detach().numpy()
        return means[:, 0] if self._single else means

    def decide(self, contexts: ArrayLike) -> np.ndarray:
        """The actions to set in each case, (n, k), in the order of X's columns; NaN where nothing is
        recommended (`decisions` says why). `contexts` are the context columns, (n, p - k), or a data frame
        that has them; ValueError if there is no region, columns are missing, or a value is missing or
        infinite.
        """
        settings = [decision.alteration for decision in self.decisions(contexts)]
        missing = [np.nan] * len(self._actions)
        rows = [missing if setting is None else setting.values.tolist() for setting in settings]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self._actions))

    def decisions(self, contexts: ArrayLike) -> list[Decision]:
        """The decisions with estimates, intervals, warnings and reasons; the same as `decide` otherwise."""
        check_is_fitted(self)
        self._validate_parameters()
        if self.region is None or not self._decides:
            raise ValueError(
                "region: expected the desired outcomes when it was fitted, such as "
                "RehearsalDecider(region=(0.6, None)); got None"
            )
        names = list(self.task_.context)
        has_names = getattr(self, "feature_names_in_", None) is not None
        columns = getattr(contexts, "columns", None) if has_names else None
        available = names if columns is None else [str(name) for name in columns]
        if missing := [name for name in names if name not in available]:
            raise ValueError(f"contexts: no column {missing}; expected {names}")
        cells = numeric(contexts, "contexts", None if columns is None else names)
        with spoken("contexts"):
            values = check_array(cells, dtype=np.float64, ensure_min_features=0, input_name="contexts")
        if values.shape[1] != len(names):
            raise ValueError(f"contexts: expected the columns {names}; got {values.shape[1]} columns")
        computable(values, names, "contexts")
        cases = [
            RehearsalCase(str(k), dict(zip(names, row, strict=True)), self.task_.box.bounds())
            for k, row in enumerate(torch.from_numpy(np.array(values)))
        ]
        objective = GaussianSuccess.for_cases(self.surrogate_, cases, level=self.level)
        decisions, misfit = ProjectionNewton().batch_search(objective), self.surrogate_.misfit()
        return decisions if misfit is None else [decision.told([misfit]) for decision in decisions]

    def _validate_parameters(self) -> None:
        """Raises ValueError for parameters that are invalid whatever the columns."""
        bounded("draws", whole(self.draws), MAX_DRAWS, 0)
        check_seed(self.seed)
        if isinstance(self.level, bool) or not isinstance(self.level, Real) or not 0 < self.level < 1:
            raise ValueError(f"level: expected a number in (0, 1), 0.95 for 95 %; got {self.level!r}")
        if self.actions is not None and (
            isinstance(self.actions, str) or not isinstance(self.actions, Iterable)
        ):
            raise ValueError(f"actions: expected a list of columns, by name or place; got {self.actions!r}")
        if not isinstance(self.bounds, Mapping | None):
            mapping = "a mapping of actions, by name or place, to (lower, upper)"
            raise ValueError(f"bounds: expected {mapping}; got {self.bounds!r}")

    def _columns(self, names: Sequence[str]) -> list[int]:
        columns = list(getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)]))
        return [columns.index(name) for name in names]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _outcome_names(y: Any) -> list[str]:
    """The names of outcomes in a data frame or a named series; empty for anything else."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    name = getattr(y, "name", None)
    return [str(name)] if isinstance(name, str) else []


def _column(key: str | int, names: Sequence[str], role: str) -> str:
    """The column of a name or a position."""
    if isinstance(key, str) and key in names:
        return key
    if isinstance(key, Integral) and not isinstance(key, bool) and -len(names) <= key < len(names):
        return names[int(key)]
    raise ValueError(f"{role}: {key!r} is none of {list(names)}, nor a place among them")


EXPECTED = "expected a table of numbers, with one row for each observation"
NOTHING = "nothing was computed"


class CellError(TableError, TypeError):
    """A cell that is neither a number nor text; a `TypeError` as well, as scikit-learn asks of estimators."""


def numeric(given: Any, role: str, names: Sequence[str] | None = None) -> Any:
    """The numbers of a frame (its columns `names`, or all), a series, or cells of texts or objects: a data
    frame of float64 where there were names, else an array with as many dimensions; other arrays as they are.
    TableError if a cell is no finite number of at most 1e150, or two columns have the same name.
    """
    if isinstance(given, torch.Tensor):
        with spoken(role):
            return (given if given.is_complex() else given.double()).detach().cpu().numpy()
    column, kind = isinstance(given, pd.Series), TableError
    if column or row_count(given) is not None:
        source = given.to_frame("values" if given.name is None else given.name) if column else given
        has_names = any(isinstance(name, str) for name in source.columns)
        frame = data_frame(source, role)
    else:
        with spoken(role):
            cells = np.asarray(given)
        if np.ma.is_masked(given):
            raise TableError(f"{role}: {EXPECTED}; some cells are masked: fill them, or leave these rows out")
        if cells.dtype.names is not None:
            hint = "write its fields as columns, such as by pandas.DataFrame(array)"
            raise TableError(f"{role}: {EXPECTED}; got a structured array: {hint}")
        if cells.dtype.kind not in "OUSMm" or cells.ndim > 2:
            return given
        if cells.ndim == 0:
            hint = "make an array of it, such as by .toarray() of a sparse one"
            raise TableError(f"{role}: {EXPECTED}; got a {type(given).__name__}: {hint}")
        # pandas takes an array of bytes for numbers.
        cells = cells.astype(object) if cells.dtype.kind == "S" else cells
        column, has_names, kind = cells.ndim == 1, False, CellError
        frame = data_frame(pd.DataFrame(cells.reshape(len(cells), -1)).add_prefix("column "), role)
    chosen = list(frame.columns) if names is None else list(names)
    if faults := number_faults(frame, chosen, 0, at=_row):
        hint_of_type = (
            "" if kind is TableError else "; an argument must be made of cells that are a string or a number"
        )
        raise kind(listed(role, faults, NOTHING) + hint_of_type)
    values = {name: numbers_of(frame[name]) for name in chosen}
    if has_names and not column:
        return pd.DataFrame(values, index=frame.index)
    array = np.stack([*values.values()], -1) if values else np.empty((len(frame), 0))
    return array[:, 0] if column else array


def computable(values: np.ndarray, names: Sequence[str], role: str, varying: bool = False) -> None:
    """Refuses numbers (n, p) beyond 1e150 and, with `varying`, columns that vary by less than 1e-150."""
    frame = pd.DataFrame(values, columns=list(names))
    if faults := number_faults(frame, list(names), 0, varying, at=_row):
        raise TableError(listed(role, faults, NOTHING))


def _row(index: int) -> str:
    return f"row {index}"


@contextmanager
def spoken(role: str) -> Iterator[None]:
    """Puts the name of the argument and what was expected into messages of scikit-learn and NumPy."""
    try:
        yield
    except TableError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise TableError(f"{role}: {str(error).strip().rstrip('.')}: {EXPECTED}") from error
