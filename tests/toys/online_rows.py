"""Rows of rounds that learn from each other, with numbers that can be checked by hand."""


def bounded(found, reach=0.2):
    """Rows with bounds on the truth, `reach` to either side, a one-sided one in between; on every second
    round the truth lies above both.
    """
    made = []
    for row in found:
        middle = row["p_true"] - (0 if row["round"] % 2 else reach + 0.1)
        told = {"truth_lower": middle - reach, "truth_upper": middle + reach}
        made.append(row | told | {"truth_least": middle - 0.8 * reach})
    return made


def rows(repeats=3, rounds=30, method="m", bound=0.05):
    """Truth rises to .7 of .8; one success in two rounds; information halves."""
    found = []
    for repeat in range(repeats):
        for index in range(rounds):
            true = 0.7 - 0.4 / (1 + index) + 0.01 * repeat
            told = {
                "success": index % 2,
                "p_true": true,
                "oracle": 0.8,
                "information": 2.0**-index,
                "lower": true - bound,
                "upper": true + 0.05,
            }
            found.append(
                {
                    "world": "w",
                    "method": method,
                    "tau": "0.7",
                    "repeat": repeat,
                    "round": index + 1,
                    "target": "a" if index else "",
                    "value": "1",
                    **told,
                }
            )
    return [{**row, "seconds": 0.1} for row in found]
