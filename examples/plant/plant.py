"""A simulated plant, which stands for a real one: the yield peaks at a temperature that the valve reaches.

    python plant.py valve=0.6 dose=2 number=9        prints the experiment as a line of experiments.csv
    python plant.py valve=0.6 dose=2                 prints the mean yield, which no experiment shows

The best setting is valve 0.6 and dose 2, with a yield of 9.44 on average.
"""

import math
import random
import sys


def run(valve: float, dose: float, number: int) -> dict[str, float]:
    """One experiment; its number determines what cannot be controlled."""
    chance = random.Random(number)
    ambient = chance.gauss(15, 2)
    temperature = ambient + 45 * valve + chance.gauss(0, 1)
    product = 5 * math.exp(-(((temperature - 42) / 9) ** 2)) * dose * math.exp(1 - dose / 2)
    return {"ambient": ambient, "temperature": temperature, "yield": product + chance.gauss(0, 0.2)}


def mean(valve: float, dose: float, count: int = 20_000) -> float:
    """The mean yield of a setting over `count` experiments, to .02 at least."""
    return sum(run(valve, dose, number)["yield"] for number in range(count)) / count


def main(words: list[str]) -> str:
    """The line of an experiment, typed as valve=V dose=D number=N, or the mean yield without a number."""
    given = dict(word.split("=") for word in words)
    valve, dose = float(given["valve"]), float(given["dose"])
    if "number" not in given:
        return f"{mean(valve, dose):.2f}"
    found = run(valve, dose, int(given["number"]))
    return ",".join(f"{value:.4g}" for value in (valve, dose, *found.values()))


if __name__ == "__main__":
    print(main(sys.argv[1:]))
