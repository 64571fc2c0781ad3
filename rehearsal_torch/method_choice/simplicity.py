"""The order of simplicity of the methods that decide for cases of a table, and which are not compared.

Simpler is what has less to be estimated from the rows, and whose answer is easier to check: no action before
an action, linear Gaussian equations before kernels, one estimator before a stack of two. Of methods whose
decisions are worth the same, the simplest is taken (`method_choice.rule`).

Methods that are not compared can be chosen by name. They answer another question than which action makes a
desired outcome most probable, repeat a publication, or take too long to be fitted several times.

Source: Breiman et al. (1984), Sec. 3.4.3 (the simplest within one standard error); the order is ours.
"""

# The methods that are compared, simplest first, each with what makes it less simple than those before it.
SIMPLEST_FIRST = {
    "none": "nothing is set, and nothing is estimated",
    "care": "linear equations with Gaussian noise: one number for each arrow, in closed form",
    "qwz23_offline": "the same equations, with parameters drawn from their posterior",
    "outcome_regression": "smooth regressions of the outcomes, whose kernels are fitted",
    "cme": "kernel regressions of success and of the covariates, with metrics that are fitted",
    "cme_stack": "the two before it, with a weight that is fitted as well",
}
# The methods that are not compared, and why.
NOT_COMPARED = {
    "cme_published": "it repeats a publication; cme is the same estimator with settings from the rows",
    "cme_nystrom": "it repeats a publication; cme is the same estimator with settings from the rows",
    "cme_fourier": "it repeats a publication; cme is the same estimator with settings from the rows",
    "grad_rh": "it trains networks, which takes minutes for each fit",
    "micns": "it looks for the cheapest alteration, and has costs to be weighed (+objective.weights)",
    "micns_online": "it is for online runs, whose world drifts",
    "qwz23": "it looks for the most informative alteration, for runs that learn from each answer",
    "qwz23_online": "it is for online runs, which learn from each answer",
    "qwz23_published": "it repeats a publication",
    "qwz23_success": "it is for several graphs that may be true; with one, it is qwz23_offline",
}
# Methods whose models are parts of another's, fitted to the same rows with the same seed: (method, part).
PARTS = {"cme": ("cme_stack", "indicator"), "outcome_regression": ("cme_stack", "outcome")}


def place(method: str) -> int:
    """The place of a method in the order of simplicity, from 0.

    Args:
        method: A method that is compared.

    Raises:
        ValueError: if it is none.
    """
    order = list(SIMPLEST_FIRST)
    if method not in order:
        raise ValueError(f"expected a method that is compared: {', '.join(order)}; got {method!r}")
    return order.index(method)
