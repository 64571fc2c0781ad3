"""What a person would type instead: quadratic regressions with scikit-learn, and a grid of actions.

Reads rows.csv and cases.csv of the current folder, and writes answers.csv.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

rows, cases = pd.read_csv("rows.csv"), pd.read_csv("cases.csv")
inputs, outcomes = ["X1", "X2", "U1", "A2"], {"Y1": 0.6, "Y2": 0.3}
models = {
    name: make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(rows[inputs], rows[name])
    for name in outcomes
}
errors = {name: (rows[name] - model.predict(rows[inputs])).to_numpy() for name, model in models.items()}
stream, grid, draws = np.random.default_rng(0), np.linspace(0, 1, 101), 200
answers = []
for case in cases.itertuples():
    drawn = stream.integers(0, len(rows), draws)
    tried = pd.DataFrame(
        {
            "X1": case.X1,
            "X2": case.X2,
            "U1": np.tile(rows["U1"].to_numpy()[drawn], len(grid)),
            "A2": np.repeat(grid, draws),
        }
    )
    good = np.ones(len(tried), dtype=bool)
    for name, bound in outcomes.items():
        good &= models[name].predict(tried) + np.tile(errors[name][drawn], len(grid)) >= bound
    answers.append(grid[good.reshape(len(grid), draws).mean(1).argmax()])
pd.DataFrame({"A2": answers}).to_csv("answers.csv", index=False)
