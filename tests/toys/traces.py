"""Rows of trials with given ends."""


def made(problem, setting, method, seed, ends, optimum):
    start, rows = optimum / 4, []
    for number, value in enumerate(ends, 1):
        values = {
            "expected": value,
            "best_expected": max(value, start),
            "recommended_expected": value,
            "optimum": optimum,
            "start": start,
            "seconds": 0.1,
        }
        rows.append(
            {
                "problem": problem,
                "setting": setting,
                "method": method,
                "seed": seed,
                "round": number,
                **values,
            }
        )
    return rows
