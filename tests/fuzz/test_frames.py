"""What Python hands over: frames of every library and cells of every kind, to the verbs, the estimator of
scikit-learn and the optimiser."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import torch

import rehearsal_torch as rt
from rehearsal_torch.adapters.sklearn import RehearsalDecider
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.verbs.episode_model import rows_of
from tests.fuzz.decisions import REHEARSALS, TRIALS
from tests.fuzz.mutations import NUMBERS, TEXTS, changed, odd, source
from tests.fuzz.verdicts import FaultError, sound

CELLS = [
    *NUMBERS,
    *TEXTS,
    *[
        None,
        True,
        b"3",
        bytearray(b"3"),
        np.bytes_(b"3"),
        1 + 2j,
        decimal.Decimal("1.5"),
        decimal.Decimal("NaN"),
    ],
    *[fractions.Fraction(1, 3), datetime.date(2020, 1, 31), datetime.time(3), datetime.timedelta(3), pd.NaT],
    *[
        pd.NA,
        pd.Timestamp("2020", tz="UTC"),
        pd.Period("2020"),
        pd.Interval(0, 1),
        np.datetime64("2020", "s"),
    ],
    *[
        torch.tensor(0.5),
        torch.ones(2),
        torch.tensor(1.0, requires_grad=True),
        np.array(3.0),
        np.ones((2, 2)),
    ],
    *[
        np.float32(1.5),
        np.int8(3),
        np.bool_(True),
        np.str_("1.5"),
        [],
        [1],
        (1, 2),
        {},
        {1},
        {"a": 1},
        range(3),
    ],
    *[object(), len, int, Ellipsis, "\ud800", -(10**5000)],
]
EPISODES = {
    "unit": "id",
    "time": "t",
    "varying": {"s": {"unit": "mm", "range": [0, 10]}},
    "actions": {"u": {"levels": 3, "cost": 1}},
    "reward": {"weights": {"s": 1.0}},
}


def column(cells):
    """A column of cells that pandas does not look into."""
    made = pd.Series([None] * len(cells), dtype=object)
    for place, cell in enumerate(cells):
        made.iat[place] = cell
    return made


def odd_frame(rng, frame):
    """A frame of pandas that is changed in a few places, of any library."""
    made = frame.copy()
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        name, kind = rng.choice(list(made.columns)), rng.randrange(9)
        place = list(made.columns).index(name)
        cells = made.iloc[:, place].tolist()
        if kind <= 2:
            for _ in range(rng.choice([1, 1, len(cells)])):
                cells[rng.randrange(len(cells))] = rng.choice(CELLS)
            made.isetitem(place, column(cells).array)
        elif kind == 3:
            made.isetitem(place, column([rng.choice(CELLS)] * len(cells)).array)
        elif kind == 4:
            names = list(made.columns)
            names[place] = rng.choice([*names, None, 3, "", b"a", ("a", 1), "set:a", float("nan")])
            made.columns = pd.Index(names, dtype=object)
        elif kind == 5:
            made = made.iloc[: rng.choice([0, 1, 3, 9, 10, 11])]
        elif kind == 6:
            factor = rng.choice([1e-200, 1e200, 1e-300, 0.0, float("nan"), 1e149])
            made.isetitem(place, [each * factor if isinstance(each, float) else each for each in cells])
        elif kind == 7:
            made.index = pd.Index([rng.choice(CELLS[:30]) for _ in range(len(made))], dtype=object)
        else:
            made = made.drop(columns=[name])
        if not len(made) or not len(made.columns):
            break
    which = rng.randrange(12)
    if which == 0:
        made.attrs["me"] = made
    elif which == 1:
        return made.to_dict("records") if made.columns.is_unique else made
    elif which == 2 and made.columns.is_unique:
        columns = {str(name): column(made[name].tolist()).tolist() for name in made.columns}
        return pl.DataFrame([pl.Series(name, each, strict=False) for name, each in plain(columns).items()])
    elif which == 3:
        return made.convert_dtypes()
    elif which == 4:
        return rng.choice([made.to_numpy(), made.values.tolist(), made.iloc[:, :1].squeeze(), made.T])
    return made


def plain(columns):
    """Columns that polars takes: those of several kinds as objects."""
    made = {}
    for name, given in columns.items():
        # Of half a sign polars panics.
        cells = ["?" if isinstance(each, str) and not each.isprintable() else each for each in given]
        try:
            pl.Series(name, cells, strict=False)
        except (Exception, pl.exceptions.PanicException):
            cells = [str(each)[:40] if not isinstance(each, int | float) else float(np.nan) for each in cells]
        made[name] = cells
    return made


def of_numbers(table):
    return pd.DataFrame(table.values.numpy(), columns=list(table.names))


def test_frames(number, judged):
    rng = source("frames", number)
    task, table = REHEARSALS[number % len(REHEARSALS)]
    frame = of_numbers(table)
    try:
        given = odd_frame(rng, frame)
        cases = rng.choice(
            [None, [{"x": 0.5}], odd_frame(rng, frame[["x"]].head(3)), {"x": rng.choice(CELLS)}]
        )
    except Exception:
        # What the libraries themselves refuse to make.
        given, cases = frame, {"x": rng.choice(CELLS)}
    task = changed(rng, task, (1, 2)) if rng.random() < 0.15 else task
    settings = {"seed": rng.choice([0, *NUMBERS, "a", None]) if rng.random() < 0.1 else number}

    def work():
        if number % 3:
            model = rt.learn(given, task, "care", **settings)
            for each in model.decide([{"x": 0.5}] if cases is None else cases):
                sound(each)
            if rng.random() < 0.3:
                model.what_if(rng.choice([{"x": 0.1}, {"x": rng.choice(CELLS)}]), {"a": rng.choice(CELLS)})
        else:
            for each in rt.rehearse(given, task, cases, "care", **settings):
                sound(each)

    judged(work, [given, cases, settings])


def test_estimators(number, judged):
    rng = source("estimators", number)
    _, table = REHEARSALS[0]
    frame = of_numbers(table)
    X, y = frame[["x", "u", "a"]], frame["y"]
    try:
        X = (
            odd_frame(rng, X)
            if rng.random() < 0.5
            else rng.choice([X, X, X, X.to_numpy(), X * 1e200, X * 1e-200])
        )
        y = odd_frame(rng, y.to_frame()) if rng.random() < 0.2 else rng.choice([y, y.to_numpy(), y.tolist()])
    except Exception:
        X = frame[["x", "u"]]
    settings = {"region": rng.choice([(0, None), {0: (0, 1)}])}
    ends = [
        5,
        [0, 1],
        (0, 1),
        (None, None),
        (1, 0),
        "ab",
        {},
        {"a": 5},
        {2: (0, 1)},
        {-1: [0, 1]},
        None,
        torch.ones(2),
    ]
    for key, values in {
        "actions": [5, "a", ["a"], [0], [-1], [], ["a", "a"], [None], ["zz"], {"a"}, [True], [2.0]],
        "region": ends,
        "bounds": ends,
        "draws": [0, 1, 5, *NUMBERS, "a", None],
        "level": [0.5, *NUMBERS, "a", None],
        "seed": [3, *NUMBERS, "a", None],
    }.items():
        if rng.random() < 0.08:
            settings[key] = rng.choice(values)
    contexts = rng.choice(
        [X, X, frame[["x", "u"]], rng.choice(CELLS), [[1.0, 2.0]], [[rng.choice(CELLS), 1.0]]]
    )

    def work():
        decider = RehearsalDecider(**settings).fit(X, y)
        predicted = decider.predict(X)
        if not np.isfinite(predicted).all():
            raise FaultError(f"predicted what is no number: {predicted}")
        for each in decider.decisions(contexts):
            sound(each)

    judged(work, [X, y, settings, contexts])


def test_handed_over(number, judged):
    """The optimiser, and tables of episodes."""
    rng = source("handed over", number)
    sessions = number % 2
    task = changed(rng, rng.choice(TRIALS) if sessions else EPISODES, (0, 2))
    if rng.random() < 0.2:
        task = rng.choice([odd(rng), torch.ones(2), [("graph", 1)], {b"graph": {}}, {"graph": torch.ones(2)}])
    told = {"X": 0.3, "Y": 1.0} | ({rng.choice(["X", "Y"]): rng.choice(CELLS)} if rng.random() < 0.7 else {})
    settings = {"seed": rng.choice([0, 0, *CELLS])} if rng.random() < 0.3 else {}
    units = pd.DataFrame(
        {"id": np.repeat(range(8), 5), "t": [*range(5)] * 8, "s": np.arange(40.0) % 7, "u": 1.0}
    )
    units["u"] = (units.index * 7 % 3).astype(float)
    try:
        given = odd_frame(rng, units)
    except Exception:
        given = units

    def work():
        if sessions:
            optimiser = rt.CausalOptimiser(task, initial=5, **settings)
            action = optimiser.ask(rng.choice([1, 1, 1, *CELLS[:8]]))[0]
            action = action if rng.random() < 0.7 else {**action, "a": rng.choice(CELLS)}
            optimiser.tell(action, told)
            if not bool(optimiser.table.values.isfinite().all()):
                raise FaultError(f"the table holds what is no number: {optimiser.table.values}")
        else:
            EpisodeTable(rows_of(given), task, **settings).observations()

    judged(work, [task, told, settings, given])
