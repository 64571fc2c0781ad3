"""Fitting the generator: what is recovered, what is refused, and trees that say what scikit-learn's say."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from rehearsal_torch.problems.nhanes.nhanes_generator import OUTCOMES, PARENTS, VARIABLES, Generator
from reproduction.nhanes import fitting
from reproduction.nhanes.fitting import _equation, _frequencies, _trees, fit_generator, validated
from reproduction.nhanes.modules import merged
from tests.reproduction.nhanes.test_modules import MODULES, needs_modules


def people(count=700, seed=0):
    """Made-up participants with some of the real dependences."""
    stream = np.random.default_rng(seed)
    table = {name: stream.lognormal(3, 0.2, count) for name in VARIABLES}
    table |= {
        "Age": stream.integers(20, 81, count),
        "Sex": stream.integers(1, 3, count),
        "Race": stream.choice([1, 2, 3, 4, 6, 7], count),
    }
    table |= {
        "FamilyHx_Diabetes": stream.integers(0, 2, count),
        "Education": stream.integers(1, 6, count),
        "Income_Ratio": stream.uniform(0, 5, count).round(2),
    }
    table["Race"] = np.where(table["Sex"] == 1, table["Race"], 3)
    table["BMI"] = 18 + 0.15 * table["Age"] + 2 * stream.standard_normal(count)
    shock = stream.standard_normal(count)
    table["HbA1c"] = np.exp(1.6 + 0.01 * table["BMI"] + 0.1 * shock)
    table["FPG"] = np.exp(
        4.4 + 0.01 * table["BMI"] + 0.1 * (0.8 * shock + 0.6 * stream.standard_normal(count))
    )
    return pd.DataFrame(table).astype(float)


@pytest.fixture(scope="module")
def small():
    return fit_generator(people(), trees=60)


def grown(rows=400, width=5, trees=30, seed=0):
    stream = np.random.default_rng(seed)
    # Whole numbers, so that rows fall on what might be thresholds.
    x = stream.integers(0, 12, (rows, width)).astype(float) / 2
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + stream.standard_normal(rows)
    model = GradientBoostingRegressor(n_estimators=trees, max_depth=3, random_state=0).fit(x, y)
    return (
        _trees([row[0] for row in model.estimators_], width, float(y.mean()), model.learning_rate),
        model,
        x,
    )


def test_a_chain_keeps_what_roots_lose(small):
    def others(chain):
        rows = small.draw(4000, np.random.default_rng(0), chain=chain)
        return (rows[rows[:, VARIABLES.index("Sex")] == 2, VARIABLES.index("Race")] != 3).mean()

    assert others(chain=False) > 0.3
    assert others(chain=True) < 0.12  # ten per cent are left by forty rounds of boosting


def test_trees_say_what_scikit_learn_says():
    trees, model, x = grown()
    np.testing.assert_allclose(trees([column[:, None] for column in x.T])[:, 0], model.predict(x), atol=1e-5)


def test_a_fit_recovers_what_made_the_data(small):
    rows = pd.DataFrame(small.draw(20_000, np.random.default_rng(0)), columns=list(VARIABLES))
    cases = people()
    assert rows[["BMI", "Age"]].corr().iloc[0, 1] == pytest.approx(
        cases[["BMI", "Age"]].corr().iloc[0, 1], abs=0.1
    )
    assert rows[list(OUTCOMES)].corr().iloc[0, 1] == pytest.approx(
        cases[list(OUTCOMES)].corr().iloc[0, 1], abs=0.1
    )
    apart = pd.DataFrame(small.draw(20_000, np.random.default_rng(0), paired=False), columns=list(VARIABLES))
    assert apart[list(OUTCOMES)].corr().iloc[0, 1] < rows[list(OUTCOMES)].corr().iloc[0, 1] - 0.3
    assert set(rows["Race"]) == {1, 2, 3, 4, 6, 7}
    for name in VARIABLES:
        assert cases[name].min() - 1e-9 <= rows[name].min() <= rows[name].max() <= cases[name].max() + 1e-9
        assert rows[name].mean() == pytest.approx(cases[name].mean(), abs=0.15 * cases[name].std())


@needs_modules
def test_the_card_is_right_and_the_shipped_equations_are_the_recipes():
    shipped = Generator.load()
    cases = merged(MODULES).cases
    assert validated(shipped, cases).summary == shipped.card["validation"]
    # One equation fitted again stands for the others.
    again, _ = _equation(cases, "BMI", PARENTS["BMI"], 100)
    columns = [cases[[name]].to_numpy() for name in PARENTS["BMI"]]
    assert np.abs(again.trees(columns) - shipped.equations["BMI"].trees(columns)).mean() < 1e-3
    assert shipped.card["bounds"]["BMI"] == [18.0, 51.3]


def test_frequencies_are_those_of_values_that_many_share_and_of_groups_where_they_are_many():
    few = _frequencies(pd.Series([1.0, 2.0, 2.0, 7.0]))
    assert few.values.tolist() == [1, 2, 7]
    assert few.shares.tolist() == [0.25, 0.5, 0.25]
    incomes = pd.Series(np.random.default_rng(0).uniform(0, 5, 3000))
    many = _frequencies(incomes)
    assert len(many.values) <= fitting.GROUPS
    assert many.shares.sum() == pytest.approx(1.0)
    assert (many.values * many.shares).sum() == pytest.approx(incomes.mean(), abs=0.01)
    assert not set(many.values) & set(incomes), "nobody's own income is kept"
