"""What the paper on structural rehearsal models prints, to stand beside our own numbers.

Means over 20 repeats of 100 rounds, each probability estimated from 1,000 samples of the world; deviations
are not printed. The worlds are those of the released code, whose ride-hailing adds the clique's noise
afterwards.

Source: Qin et al. (2023), Tab. 1 and Sec. 6.
"""

TAU = "0.7"
# World to method to the average success probability after 100 rounds.
TABLE1: dict[str, dict[str, float]] = {
    "ride_hailing": {"ddpg": 0.173, "ppo": 0.154, "sac": 0.177, "cats": 0.104, "qwz23": 0.714},
    "bermuda": {"ddpg": 0.230, "ppo": 0.190, "sac": 0.205, "cats": 0.215, "qwz23": 0.679},
}
# DDPG on Bermuda after 10,000 rounds.
LONG: dict[tuple[str, str], float] = {("bermuda", "ddpg"): 0.688}
# The share of ride-hailing's alterations that set the recommendation.
RECOMMENDED = 0.958
