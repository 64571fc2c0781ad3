"""Fitting the generator: what is recovered, what is refused, and trees that say what scikit-learn's say."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from rehearsal_torch.problems.nhanes.generator import Generator
from rehearsal_torch.problems.nhanes.modules import CONTEXT, OUTCOMES, PARENTS, VARIABLES
from reproduction.nhanes import fitting
from reproduction.nhanes.fitting import (
    _classifier,
    _equation,
    _frequencies,
    _trees,
    fit_generator,
    settings,
    validated,
)
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


@pytest.mark.parametrize(
    ("change", "progress"),
    [
        (lambda cases: cases.drop(columns="BMI"), r"no column \['BMI'\]"),
        (lambda cases: cases.assign(BMI=np.nan), "some values are missing"),
        (lambda cases: cases.head(500), "at least 512 complete cases; got 500"),
        (lambda cases: cases.assign(HDL=50.0), r"\['HDL'\]: all values are equal"),
    ],
)
def test_what_cannot_be_fitted_is_said(change, progress):
    with pytest.raises(ValueError, match=progress):
        fit_generator(change(people()))


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


def test_an_equation_is_scikit_learns_and_leaves_its_residuals():
    cases, parents = people(), PARENTS["BMI"]
    equation, residuals = _equation(cases, "BMI", parents, 20)
    columns, target = cases[list(parents)].to_numpy(), np.log1p(cases["BMI"].to_numpy())
    model = GradientBoostingRegressor(
        n_estimators=20, max_depth=3, learning_rate=0.1, min_samples_leaf=20, random_state=0
    ).fit(columns, target)
    np.testing.assert_allclose(residuals, target - model.predict(columns), atol=1e-12)
    found = equation.trees([cases[[name]].to_numpy() for name in parents])[:, 0]
    np.testing.assert_allclose(found, model.predict(columns), atol=1e-4)
    assert equation.support == (cases["BMI"].min(), cases["BMI"].max())


@pytest.mark.parametrize("name", ["Sex", "Race"])
def test_classifiers_score_as_scikit_learns_do_for_two_classes_and_for_more(name, monkeypatch):
    monkeypatch.setattr(fitting, "CLASSIFIER_TREES", 5)
    cases, parents = people(400), ("Age", "BMI")
    made = _classifier(cases, name, parents)
    columns = cases[list(parents)].to_numpy()
    model = GradientBoostingClassifier(
        n_estimators=5, max_depth=3, learning_rate=0.1, min_samples_leaf=20, random_state=0
    ).fit(columns, cases[name])
    assert made.values.tolist() == model.classes_.tolist()
    scores = np.stack([each([cases[[p]].to_numpy() for p in parents])[:, 0] for each in made.scores], -1)
    wanted = model.decision_function(columns).reshape(len(cases), -1)
    # Scores of several classes count up to a constant.
    shift = 0.0 if wanted.shape[1] == 1 else (scores - wanted).mean(1, keepdims=True)
    np.testing.assert_allclose(scores - shift, wanted, atol=1e-4)


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


def test_the_validation_compares_correlations_distributions_and_outcomes(small, monkeypatch):
    monkeypatch.setattr(fitting, "DRAWS", 500)
    cases = people()
    found = validated(small, cases)
    assert found.real.shape == (700, 17)
    assert found.generated.shape == (500, 17)
    real, drawn = (np.corrcoef(rows.T) for rows in (found.real, found.generated))
    np.testing.assert_allclose(found.correlations, np.stack([real, drawn]))
    first = found.summary["readings"]["roots independent, noise paired"]
    assert found.summary["default"] == "roots independent, noise paired"
    assert first["correlation_mae"] == round(float(np.abs(drawn - real).mean()), 4)
    assert first["correlation_mae_off_diagonal"] == round(float(np.abs(drawn - real).sum() / (17 * 16)), 4), (
        "the diagonal is right by definition"
    )
    below = (cases["HbA1c"] < 5.7) & (cases["FPG"] < 100)
    assert found.summary["desired_real"] == round(float(below.mean()), 4)
    assert set(found.summary["largest_distance_of_distributions"]) == set(VARIABLES)
    assert len(found.summary["readings"]) == 4


def test_what_is_being_fitted_is_told_variable_by_variable(monkeypatch):
    progress = []
    monkeypatch.setattr(fitting, "CLASSIFIER_TREES", 1)
    fit_generator(people(), progress.append, trees=1)
    assert progress[: len(PARENTS)] == [
        f"{name} from {len(parents)} parents" for name, parents in PARENTS.items()
    ]
    assert progress[len(PARENTS) :] == [
        f"{name} given {', '.join(CONTEXT[:place])}" for place, name in enumerate(CONTEXT) if place
    ]
    assert set(settings()) == {"equations", "classifiers", "residuals"}
