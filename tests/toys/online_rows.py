"""Rows of rounds that learn from each other, with numbers that can be checked by hand."""


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
