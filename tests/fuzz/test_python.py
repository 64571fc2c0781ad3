"""What Python hands over: frames of every library and cells of every kind, to the verbs, to the estimator of
scikit-learn, and to sessions of trials whose file is damaged."""

import datetime
import decimal
import fractions
import math

import numpy as np
import pandas as pd
import polars as pl
import torch
from hypothesis import strategies as st

import rehearsal_torch as rt
from rehearsal_torch.api.episode_model import rows_of as rows_of_units
from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from tests.fuzz.decisions import REHEARSALS, TRIALS, bound, experiments, quick, rows_of, search
from tests.fuzz.strategies import NUMBERS, OTHERS, TEXTS, changed, damaged, rows_changed, text_of
from tests.fuzz.verdicts import FaultError, begun, desk, fuzzed, judged, sentence, sound, worded
from tests.toys.causal_toys import WrittenLaw, WrittenModel

CELLS = [
    *NUMBERS, *TEXTS, *OTHERS, b"3", bytearray(b"3"), np.bytes_(b"3"), 1 + 2j, decimal.Decimal("1.5"),
    decimal.Decimal("NaN"), fractions.Fraction(1, 3), datetime.date(2020, 1, 31), datetime.time(3),
    datetime.timedelta(3), pd.NaT, pd.NA, pd.Timestamp("2020", tz="UTC"), pd.Period("2020"),
    pd.Interval(0, 1), np.datetime64("2020", "s"), torch.tensor(0.5), torch.ones(2),
    torch.tensor(1.0, requires_grad=True),
    np.array(3.0), np.ones((2, 2)), np.float32(1.5), np.int8(3), np.bool_(True), np.str_("1.5"), (1, 2), {1},
    range(3), object(), len, int, Ellipsis, "\ud800", -(10**5000),
]  # fmt: skip
CELL = st.sampled_from(CELLS)
EPISODES = {
    "unit": "id",
    "time": "t",
    "varying": {"s": {"unit": "mm", "range": [0, 10]}},
    "actions": {"u": {"levels": 3, "cost": 1}},
    "reward": {"weights": {"s": 1.0}},
}
UNITS = pd.DataFrame({"id": np.repeat(range(8), 5), "t": [*range(5)] * 8, "s": np.arange(40.0) % 7})
UNITS["u"] = (UNITS.index * 7 % 3).astype(float)


def column(cells):
    """A column of cells that pandas does not look into."""
    made = pd.Series([None] * len(cells), dtype=object)
    for place, cell in enumerate(cells):
        made.iat[place] = cell
    return made.array


def of_polars(frame):
    """The same of polars, which panics of half a sign, and takes no columns of several kinds."""
    made = {}
    for name in frame.columns:
        cells = ["?" if isinstance(each, str) and not each.isprintable() else each for each in frame[name]]
        try:
            made[str(name)] = pl.Series(str(name), cells, strict=False)
        except (Exception, pl.exceptions.PanicException):
            made[str(name)] = pl.Series(str(name), [str(each)[:40] for each in cells])
    return pl.DataFrame(made)


@st.composite
def frames(draw, frame):
    """A frame of pandas that is changed in a few places, of any library."""
    made = frame.copy()
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(made.columns) - 1))
        cells = made.iloc[:, place].tolist()
        change = draw(st.sampled_from(["cell", "cell", "column", "name", "rows", "scale", "index", "gone"]))
        if change == "cell":
            cells[draw(st.integers(0, len(cells) - 1))] = draw(CELL)
            made.isetitem(place, column(cells))
        elif change == "column":
            made.isetitem(place, column([draw(CELL)] * len(cells)))
        elif change == "name":
            names = list(made.columns)
            names[place] = draw(st.sampled_from([*names, None, 3, "", b"a", ("a", 1), "set:a", math.nan]))
            made.columns = pd.Index(names, dtype=object)
        elif change == "rows":
            made = made.iloc[: draw(st.sampled_from([0, 1, 3, 9, 10, 11]))]
        elif change == "scale":
            factor = draw(st.sampled_from([1e-200, 1e200, 1e-300, 0.0, math.nan, 1e149]))
            made.isetitem(place, [each * factor if isinstance(each, float) else each for each in cells])
        elif change == "index":
            made.index = pd.Index(column([draw(st.sampled_from(CELLS[:30]))] * len(made)), dtype=object)
        else:
            made = made.drop(columns=made.columns[place])
        if made.empty:
            break
    kind = draw(
        st.sampled_from(["pandas"] * 5 + ["attrs", "records", "polars", "dtypes", "array", "list", "turned"])
    )
    if kind == "attrs":
        made.attrs["me"] = made
    if kind in ("records", "polars") and made.columns.is_unique:
        return made.to_dict("records") if kind == "records" else of_polars(made)
    if kind == "dtypes":
        return made.convert_dtypes()
    return {"array": made.to_numpy, "list": made.values.tolist, "turned": made.transpose}.get(
        kind, lambda: made
    )()


def drawn(data, strategy, instead):
    """A frame, or another one where the library itself refuses to make it."""
    try:
        return data.draw(strategy)
    except (TypeError, ValueError, OverflowError, ArithmeticError, RuntimeError):
        return instead


def of_numbers(table):
    return pd.DataFrame(table.values.numpy(), columns=list(table.names))


@fuzzed
def test_frames(data):
    task, table = data.draw(st.sampled_from(REHEARSALS))
    frame = of_numbers(table)
    given = drawn(data, frames(frame), frame)
    cases = data.draw(st.sampled_from([[{"x": 0.5}], {"x": data.draw(CELL)}, frame[["x"]].head(3)]))
    task = data.draw(st.one_of(st.just(task), st.just(task), changed(task, 1, 2)))
    seed = data.draw(st.one_of(st.integers(0, 9), CELL))
    given_in, action = {"x": data.draw(st.one_of(st.just(0.1), CELL))}, {"a": data.draw(CELL)}

    def work():
        model = rt.learn(given, task, "care", seed=seed)
        for each in model.decide(cases):
            sound(each)
        model.what_if(given_in, action)

    judged(work)


@fuzzed
def test_tables_of_episodes(data):
    task = data.draw(
        st.one_of(changed(EPISODES, 0, 2), st.sampled_from([*OTHERS, torch.ones(2), {b"unit": {}}]))
    )
    given = drawn(data, frames(UNITS), UNITS)
    judged(lambda: EpisodeTable(rows_of_units(given), task).observations())


class Written(WrittenModel):
    """A model that learns nothing."""

    def __init__(self, task):
        laws = {
            "X": WrittenLaw(lambda inputs: inputs[..., 0] ** 2, lambda inputs: inputs.sum(-1)),
            "Y": WrittenLaw(lambda inputs: -(inputs - 0.5).square().sum(-1), lambda inputs: inputs.sum(-1)),
        }
        super().__init__(task, laws)

    def parts(self, table):
        self.tried = table.columns(self.task.actions)
        return iter(())


def usable(optimiser, action):
    values = [action[name] for name in optimiser.task.actions]
    if not all(map(math.isfinite, values)):
        raise FaultError(f"asked for what is no number: {action}")
    optimiser.task.check_action(torch.tensor(values, dtype=torch.float64))


class Session:
    """One sequence of calls, some of them strange."""

    def __init__(self, data, folder):
        self.draw, self.folder = data.draw, folder
        self.file = folder / "trials.json" if self.draw(st.booleans()) else None
        # Most sessions learn nothing, which takes no time.
        learns = self.draw(st.integers(0, 6)) == 0
        self.method = (quick, bound, search) if learns else (Written, PosteriorMean, search)
        task = self.draw(st.one_of(st.sampled_from(TRIALS), changed(TRIALS[0], 0, 1)))
        self.optimiser = CausalOptimiser(task, *self.method, initial=5, file=self.file)

    def odd(self, like):
        """A value, or a dictionary in which one is strange."""
        if self.draw(st.booleans()):
            return like
        cell = self.draw(CELL)
        return (
            {**like, self.draw(st.sampled_from([*like, "c", None])): cell} if isinstance(like, dict) else cell
        )

    def ask(self):
        for action in self.optimiser.ask(self.draw(st.sampled_from([1, 1, 1, 2, 3, *CELLS[:17]]))):
            usable(self.optimiser, action)

    def tell(self):
        action = self.one()
        nodes = {"X": action["a"] ** 2, "Y": 1 - (action["b"] - 1.2) ** 2}
        if self.draw(st.booleans()):
            self.optimiser.tell(action, nodes)
        else:
            altered = self.draw(st.sampled_from([(), ["X"], ["a"], "X", {"X": 1}, 3]))
            self.optimiser.tell(self.odd(action), self.odd(nodes), altered=altered)

    def fail(self):
        self.optimiser.fail(self.odd(self.one()), self.odd("broken"), nodes=self.odd({"X": 0.3, "Y": 1.0}))

    def abandon(self):
        self.optimiser.abandon(self.odd(self.one()), self.odd("broken"))

    def one(self):
        return self.draw(st.sampled_from(self.optimiser.pending or [{"a": 0.3, "b": 1.5}]))

    def save_and_load(self):
        copy = self.folder / "copy.json"
        self.optimiser.save(copy)
        if self.draw(st.booleans()):
            copy.write_bytes(self.draw(damaged(copy.read_bytes())))
        self.optimiser = CausalOptimiser.load(copy, None, *self.method)

    def damage(self):
        if self.file is not None and self.file.exists():
            self.file.write_bytes(self.draw(damaged(self.file.read_bytes())))

    def read(self):
        past = self.folder / "past.csv"
        past.write_text(text_of(self.draw(rows_changed(rows_of(experiments(6))))), "utf-8", "replace")
        self.optimiser.read(past)

    def write(self):
        self.optimiser.write(self.folder / "past.csv")
        self.optimiser.read(self.folder / "past.csv")

    def recommend(self):
        action, worth = self.optimiser.recommend()
        usable(self.optimiser, action)
        if not math.isfinite(worth):
            raise FaultError(f"recommended with the worth {worth}")

    def forget(self):
        self.optimiser.forget()

    def step(self, name):
        """A call; refused, it has changed nothing."""
        before = self.optimiser.trials
        begun()
        try:
            getattr(self, name)()
        except Exception as error:
            said = sentence(error)
            if said is None:
                raise
            worded(said)
            if self.optimiser.trials != before and self.file is None:
                raise FaultError(f"{name} was refused ({said}) and has changed the trials") from None
        ids = [trial.id for trial in self.optimiser.trials]
        if ids != sorted(set(ids)):
            raise FaultError(f"numbers of trials: {ids}")
        if not bool(self.optimiser.table.values.isfinite().all()):
            raise FaultError(f"the table holds what is no number: {self.optimiser.table.values}")
        if len(self.optimiser.table) != sum(trial.state == "completed" for trial in self.optimiser.trials):
            raise FaultError("the table has other rows than there are completed trials")


CALLS = [
    *["ask", "tell"] * 4, "fail", "abandon", "forget", "save_and_load", "read", "write", "recommend",
    "damage",
]  # fmt: skip


@fuzzed
def test_trials(data):
    calls = data.draw(st.lists(st.sampled_from(CALLS), min_size=8, max_size=22))
    calls = ["ask", "tell"] * 6 + calls if data.draw(st.booleans()) else calls

    def work():
        session = Session(data, folder)
        for call in calls:
            session.step(call)

    with desk() as folder:
        judged(work)
