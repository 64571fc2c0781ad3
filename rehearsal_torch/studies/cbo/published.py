"""What the paper on causal Bayesian optimisation prints as numbers: best expected reward by round, mean and
deviation over four seeds.

Source: Ren et al. (2025), Tab. 2 (Dropwave, unit-Gaussian noise) and Tab. 3 (Alpine2, unit-Gaussian noise).
"""

ROUNDS = (20, 40, 60, 80, 100)
# Problem with its setting to method to (mean, deviation) at each of ROUNDS.
TABLES = {
    "dropwave unit": {
        "mcbo": ((0.78, 0.05), (0.83, 0.04), (0.87, 0.03), (0.88, 0.03), (0.91, 0.02)),
        "excbo": ((0.76, 0.04), (0.84, 0.04), (0.89, 0.03), (0.89, 0.02), (0.89, 0.02)),
    },
    "alpine2 unit": {
        "mcbo": ((38.46, 14.13), (76.47, 16.56), (189.40, 15.43), (327.07, 12.38), (363.86, 3.26)),
        "excbo": ((28.98, 13.32), (106.42, 33.44), (166.48, 42.43), (196.22, 32.33), (241.57, 14.00)),
    },
}
