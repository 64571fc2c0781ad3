"""c-separation against the definition, path by path, and what it refuses."""

import time
from dataclasses import replace
from itertools import chain, combinations, pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import (
    Adjustment,
    adjustment,
    c_separated,
    connected,
    dependence,
    missing_arrows,
    reaches,
)
from tests.toys.random_graphs import questions, random_graph

EXAMPLES = settings(max_examples=40, derandomize=True, deadline=None)


def runs(graph, path):
    """The path cut into runs of members that bi-directional edges join."""
    found = [[path[0]]]
    for before, after in pairwise(path):
        if graph.clique(before) == graph.clique(after):
            found[-1].append(after)
        else:
            found.append([after])
    return found


def blocked(graph, path, known, printed=False):
    """Whether a path is blocked: by the definition in use, or by the printed one (whose runs lie between two
    directed edges)."""
    parts, arrows = runs(graph, path), set(graph.edges)
    for place, run in enumerate(parts):
        into_first = place > 0 and (parts[place - 1][-1], run[0]) in arrows
        into_last = place + 1 < len(parts) and (parts[place + 1][0], run[-1]) in arrows
        out_first = place > 0 and not into_first
        out_last = place + 1 < len(parts) and not into_last
        if into_first and into_last:
            if not graph.descendants(run) & known:
                return True
        elif printed:
            if 0 < place < len(parts) - 1 and set(run) <= known:
                return True
        elif (out_first and run[0] in known) or (out_last and run[-1] in known):
            return True
    return False


def by_paths(graph, x, y, known, printed=False):
    """Separation by listing all paths."""
    skeleton = nx.Graph([*graph.edges, *graph.bidirected])
    skeleton.add_nodes_from(graph.names)
    paths = (path for one in x for other in y for path in nx.all_simple_paths(skeleton, one, other))
    return all(blocked(graph, path, known, printed) for path in paths)


@EXAMPLES
@given(st.integers(0, 10**6))
def test_the_search_answers_as_listing_all_paths_does(seed):
    graph = random_graph(seed)
    for x, y, known in questions(graph, seed):
        assert c_separated(graph, x, y, known) == by_paths(graph, x, y, known), (graph, x, y, known)


@EXAMPLES
@given(st.integers(0, 10**6))
def test_what_the_printed_definition_separates_is_separated(seed):
    graph = random_graph(seed)
    for x, y, known in questions(graph, seed):
        if by_paths(graph, x, y, known, printed=True):
            assert c_separated(graph, x, y, known)


def test_both_answers_and_both_definitions_occur():
    answers = {True: 0, False: 0}
    apart = 0
    for seed in range(150):
        graph = random_graph(seed)
        for x, y, known in questions(graph, seed, 3):
            answers[c_separated(graph, x, y, known)] += 1
            apart += c_separated(graph, x, y, known) != by_paths(graph, x, y, known, printed=True)
    assert min(answers.values()) > 100
    assert apart > 0


@pytest.mark.slow
def test_a_graph_of_a_thousand_variables_is_answered_at_once_and_the_time_grows_with_the_edges():
    seconds = {}
    for count in (1000, 4000):
        stream = np.random.default_rng(count)
        parents = {
            f"v{index}": {f"v{int(other)}" for other in stream.integers(0, index, 4)}
            for index in range(1, count)
        }
        graph = RehearsalGraph.of(parents)
        known = {f"v{index}" for index in range(1, count, 3)}
        spent = []
        for _ in range(3):
            began = time.process_time()
            connected(graph, "v0", known)
            spent.append(time.process_time() - began)
        seconds[count] = min(spent)
    assert seconds[1000] < 0.05
    assert seconds[4000] < 12 * seconds[1000]


# X -> A1 -> U -> A2 -> Y, U -> Y: U follows one action and confounds the other.
SEQUENTIAL = {"A1": ("X",), "U": ("X", "A1"), "A2": ("X", "U"), "Y": ("U", "A2", "X")}


class Linear:
    """A linear structural model over a graph, with random weights; the noise within a clique is
    correlated."""

    def __init__(self, graph, seed):
        stream, self.names = np.random.default_rng(seed), graph.names
        place = {name: index for index, name in enumerate(self.names)}
        count = len(self.names)
        self.weights, self.noise = np.zeros((count, count)), np.zeros((count, count))
        for source, target in graph.edges:
            self.weights[place[target], place[source]] = stream.choice([-1, 1]) * stream.uniform(0.4, 1.2)
        for clique in graph.cliques:
            at = [place[name] for name in clique]
            root = stream.normal(size=(len(at), len(at))) + np.eye(len(at))
            self.noise[np.ix_(at, at)] = root @ root.T + 0.3 * np.eye(len(at))
        for pair in graph.hidden:
            at, root = [place[name] for name in pair], stream.uniform(0.5, 1.5, 2)
            self.noise[np.ix_(at, at)] += np.outer(root, root)

    def covariance(self, altered=()):
        """Of all variables; altered ones become independent with variance one, which leaves regressions on
        them as they are."""
        weights, noise = self.weights.copy(), self.noise.copy()
        for index in (self.names.index(name) for name in altered):
            weights[index] = noise[index] = noise[:, index] = 0
            noise[index, index] = 1
        total = np.linalg.inv(np.eye(len(self.names)) - weights)
        return total @ noise @ total.T

    def regression(self, targets, inputs, altered=()):
        """Coefficients (targets, inputs) of the population least squares."""
        covariance = self.covariance(altered)
        t, i = ([self.names.index(name) for name in names] for names in (targets, inputs))
        return (
            covariance[np.ix_(t, i)] @ np.linalg.inv(covariance[np.ix_(i, i)]) if i else np.zeros((len(t), 0))
        )


def adjusted(world, found, context, altered, outcomes):
    """E[Y | x, a altered] as a linear function of (x, a), by the formula."""
    later = [*context, *found.before, *found.between, *altered]
    last = world.regression(outcomes, later)
    pick = {name: last[:, [index]] for index, name in enumerate(later)}
    coefficients = {name: pick[name] for name in (*context, *altered)}
    folded = {name: pick[name] for name in found.before}
    if found.front_door:
        known = [*context, *found.before]
        usual = np.concatenate([pick[name] for name in altered], 1) @ world.regression(altered, known)
        coefficients |= {name: np.zeros_like(pick[name]) for name in altered}
        for index, name in enumerate(known):
            holder = folded if name in folded else coefficients
            holder[name] = holder[name] + usual[:, [index]]
    if found.between:
        given_first = [*context, *found.before, *found.first]
        middle = world.regression(found.between, given_first)
        through = np.concatenate([pick[name] for name in found.between], 1) @ middle
        for index, name in enumerate(given_first):
            holder = folded if name in folded else coefficients
            holder[name] = holder[name] + through[:, [index]]
    if found.before:
        expected = world.regression(found.before, context)
        through = np.concatenate([folded[name] for name in found.before], 1) @ expected
        for index, name in enumerate(context):
            coefficients[name] = coefficients[name] + through[:, [index]]
    return np.concatenate([coefficients[name] for name in (*context, *altered)], 1)


def truth(world, context, altered, outcomes):
    return world.regression(outcomes, [*context, *altered], altered)


def holds(found, graph, seed, context, altered, outcomes, near=1e-8):
    """Whether the formula gives the true effect in a random linear model."""
    world = Linear(graph, seed)
    return np.allclose(
        adjusted(world, found, context, altered, outcomes),
        truth(world, context, altered, outcomes),
        atol=near,
    )


def drawn(seed, bows=False):
    """A random graph over seven variables, the first ones context, the last outcome; sometimes two of the
    middle share a hidden cause, beside an arrow."""
    stream = np.random.default_rng(seed)
    middle = [f"z{index}" for index in range(4)]
    names = ["x0", "x1", *middle, "y"]
    parents = {
        name: [earlier for earlier in names[:place] if stream.random() < 0.55]
        for place, name in enumerate(names)
    }
    joined = []
    if stream.random() < 0.4:
        first = int(stream.integers(0, len(names) - 1))
        pair = names[first : first + 2]
        parents[pair[1]] = [name for name in parents[pair[1]] if name != pair[0]]
        joined = [tuple(pair)]
    if bows:
        arrows = [(cause, child) for child, causes in parents.items() for cause in causes]
        joined = [arrows[place] for place in stream.choice(len(arrows), min(2, len(arrows)), replace=False)]
    altered = tuple(sorted(stream.choice(middle, int(stream.integers(1, 4)), replace=False)))
    return RehearsalGraph.of(parents, joined), ("x0", "x1"), altered, ("y",)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_where_there_is_no_reason_against_it_the_formula_gives_the_true_effect(seed):
    graph, context, altered, outcomes = drawn(seed)
    found = adjustment(graph, context, altered, outcomes)
    assert not {*found.before, *found.between} & {*context, *altered, *outcomes}
    assert not set(found.before) & set(found.between)
    assert not set(found.before) & graph.descendants(altered), "what is adjusted for before is not influenced"
    assert found.reasons or holds(found, graph, seed, context, altered, outcomes)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_with_arrows_beside_hidden_common_causes_the_formula_is_true_or_given_up(seed):
    graph, context, altered, outcomes = drawn(seed, bows=True)
    found = adjustment(graph, context, altered, outcomes)
    assert found.reasons or holds(found, graph, seed, context, altered, outcomes)


@pytest.mark.parametrize("bows", [False, True])
def test_what_blocks_the_paths_is_what_networkx_finds(bows):
    """All altered variables at once, with a hidden variable for every edge of two heads."""
    answers = []
    for seed in range(150):
        graph, context, altered, outcomes = drawn(seed, bows)
        found = adjustment(graph, context, altered, outcomes, sequential=False)
        if any("lie between" in reason for reason in found.reasons):
            continue
        whole = nx.DiGraph([edge for edge in graph.edges if edge[0] not in altered])
        whole.add_nodes_from(graph.names)
        whole.add_edges_from((pair, end) for pair in graph.bidirected for end in pair)
        separated = nx.is_d_separator(whole, set(altered), set(outcomes), {*context, *found.before})
        assert separated != any("have a common cause" in reason for reason in found.reasons)
        answers.append(separated)
    assert len(answers) > 60
    assert 10 < sum(answers) < len(answers) + (not bows)


def test_an_arrow_beside_a_hidden_common_cause_is_blamed_by_name_where_it_cannot_be_blocked():
    parents = {"u": ("x",), "a": ("u",), "y": ("a", "u")}
    found = adjustment(RehearsalGraph.of(parents, [("a", "y")]), ("x",), ("a",), ("y",))
    assert found.reasons == (
        "a and y have a common cause that is not blocked by x, u (a -> y accompanies a <-> y), and a acts on "
        "y directly, so that there is no front door",
    )
    assert adjustment(RehearsalGraph.of(parents), ("x",), ("a",), ("y",)).reasons == ()
    # A hidden cause of the covariate and the action opens nothing once the covariate is known.
    assert adjustment(RehearsalGraph.of(parents, [("u", "a")]), ("x",), ("a",), ("y",)).reasons == ()
    worlds = [drawn(seed, bows=True) for seed in range(200)]
    held = [not adjustment(*world).reasons for world in worlds if world[0].hidden]
    assert 20 < sum(held) < len(held) - 20, "both happen"


def test_it_is_rarely_given_up_and_the_sequential_formula_is_needed_now_and_then():
    found = [adjustment(*drawn(seed)) for seed in range(400)]
    valid = [each for each in found if not each.reasons]
    assert len(valid) > 200
    assert sum(bool(each.between) for each in valid) > 10


def test_a_covariate_between_two_alterations_calls_for_the_sequential_formula():
    graph = RehearsalGraph.of(SEQUENTIAL)
    found = adjustment(graph, ("X",), ("A1", "A2"), ("Y",))
    assert (found.before, found.between, found.first, found.reasons) == ((), ("U",), ("A1",), ())
    assert holds(found, graph, 0, ("X",), ("A1", "A2"), ("Y",))
    single = adjustment(graph, ("X",), ("A1", "A2"), ("Y",), sequential=False)
    assert (single.between, single.first) == ((), ())
    assert "U lie between alterations" in single.reasons[0]
    assert not holds(single, graph, 0, ("X",), ("A1", "A2"), ("Y",), near=0.05)


def test_three_alterations_with_covariates_between_each_are_too_many():
    graph = RehearsalGraph.of(
        {
            **{k: v for k, v in SEQUENTIAL.items() if k != "Y"},
            "V": ("A2",),
            "A3": ("V",),
            "Y": ("U", "V", "A2", "A3"),
        }
    )
    found = adjustment(graph, ("X",), ("A1", "A2", "A3"), ("Y",))
    assert any("more than one place" in reason for reason in found.reasons)


def test_a_hidden_common_cause_of_consequences_calls_for_the_sequential_formula():
    # The cause of b tells what moves w, and w leads to y.
    parents = {"a": ("x",), "m": ("a",), "w": ("a",), "b": ("m",), "y": ("w", "b")}
    asked = ("x",), ("a", "b"), ("y",)
    apart, joined = RehearsalGraph.of(parents), RehearsalGraph.of(parents, [("m", "w")])
    found = adjustment(apart, *asked)
    assert found.reasons == ()
    assert holds(found, apart, 1, *asked)
    assert not holds(found, joined, 1, *asked, near=0.05)
    sequential = adjustment(joined, *asked)
    assert (sequential.first, sequential.reasons) == (("a",), ())
    assert set(sequential.between) == {"m", "w"}
    assert holds(sequential, joined, 1, *asked)
    assert adjustment(joined, *asked, sequential=False).reasons == (
        "a, b and y have a common cause that is not blocked by x, and b acts on y directly, so that there is "
        "no front door",
    )


def test_part_of_a_clique_cannot_be_altered_without_saying_so():
    graph = RehearsalGraph.of({"p": ("x",), "y": ("p", "q")}, [("p", "q")])
    found = adjustment(graph, ("x",), ("p",), ("y",))
    assert (found.before, found.reasons) == (("q",), ())
    (assumed,) = found.assumed
    assert "a setting of p leaves q as it is: if they influence each other" in assumed
    together = adjustment(graph, ("x",), ("p", "q"), ("y",))
    assert (together.reasons, together.assumed) == ((), ()), (
        "altered together, nothing within the clique matters"
    )
    given = RehearsalGraph.of({"p": ("x",), "y": ("p", "x")}, [("p", "x")])
    assert adjustment(given, ("x",), ("p",), ("y",)).assumed == (), "the context is as it is"


def mixed_graph(seed):
    """A random acyclic directed mixed graph over six variables, with an action, an outcome, and a context
    that the action does not influence."""
    stream = np.random.default_rng(seed)
    names = [f"v{index}" for index in range(6)]
    pairs = list(combinations(names, 2))
    graph = RehearsalGraph.mixed(
        names,
        [pair for pair in pairs if stream.random() < 0.4],
        [pair for pair in pairs if stream.random() < 0.25],
    )
    action, outcome = sorted(stream.choice(5, 2, replace=False))
    before = [name for name in names if name not in graph.descendants([names[action]])]
    context = tuple(name for name in before if name != names[outcome] and stream.random() < 0.4)
    return graph, context, (names[action],), (names[outcome],)


def satisfied(graph, given, action, outcome):
    """The adjustment criterion, by d-separation in the graph with its hidden causes made explicit."""
    whole = nx.DiGraph(graph.edges)
    whole.add_nodes_from(graph.names)
    within = (nx.descendants(whole, action) | {action}) & (nx.ancestors(whole, outcome) | {outcome})
    causal = within - {action} if outcome in nx.descendants(whole, action) else set()
    if any(({name} | nx.descendants(whole, name)) & given for name in causal):
        return False
    whole.remove_edges_from([(action, name) for name in causal if whole.has_edge(action, name)])
    whole.add_edges_from((pair, end) for pair in graph.bidirected for end in pair)
    return nx.is_d_separator(whole, {action}, {outcome}, given)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_a_set_is_found_where_one_satisfies_the_criterion_and_what_is_found_does(seed):
    graph, context, (action,), (outcome,) = mixed_graph(seed)
    found = adjustment(graph, context, (action,), (outcome,))
    others = [name for name in graph.names if name not in {*context, action, outcome}]
    exists = any(
        satisfied(graph, {*context, *names}, action, outcome)
        for size in range(len(others) + 1)
        for names in combinations(others, size)
    )
    adjusted = not found.reasons and not found.front_door
    assert adjusted == exists
    assert not adjusted or satisfied(graph, {*context, *found.before}, action, outcome)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_in_mixed_graphs_the_formula_is_true_or_given_up(seed):
    graph, context, altered, outcomes = mixed_graph(seed)
    found = adjustment(graph, context, altered, outcomes)
    assert found.reasons or holds(found, graph, seed, context, altered, outcomes)
    stream = np.random.default_rng(seed)
    rest = [name for name in graph.names if name not in {*context, *outcomes}]
    several = tuple(str(name) for name in stream.choice(rest, min(2, len(rest)), replace=False))
    if not graph.descendants(several) & set(context) and not graph.descendants(outcomes) & set(several):
        found = adjustment(graph, context, several, outcomes)
        assert found.reasons or holds(found, graph, seed, context, several, outcomes)


def test_both_formulas_and_neither_occur():
    found = [adjustment(*mixed_graph(seed)) for seed in range(400)]
    assert sum(bool(each.reasons) for each in found) > 40
    assert sum(each.front_door for each in found) > 5
    assert sum(not each.reasons and not each.front_door for each in found) > 100


FRONT_DOOR = (("x", "t"), ("x", "y"), ("t", "m"), ("m", "y"))


def test_the_front_door_is_taken_where_a_hidden_cause_joins_action_and_outcome():
    graph = RehearsalGraph.mixed("xtmy", FRONT_DOOR, [("t", "y")])
    found = adjustment(graph, ("x",), ("t",), ("y",))
    assert found == Adjustment((), ("m",), ("t",), (), front_door=True)
    assert holds(found, graph, 3, ("x",), ("t",), ("y",))
    naive = replace(found, between=(), front_door=False)
    assert not holds(naive, graph, 3, ("x",), ("t",), ("y",), near=0.05)
    assert adjustment(graph, ("x",), ("t",), ("y",), front_door=False).reasons == (
        "t and y have a common cause that is not blocked by x, and it could be told through m, by the front "
        "door, which this method does not use: decision=outcome_regression does",
    )
    # Of two mediators one suffices, and it is the one that no further hidden cause joins.
    twice = [("t", "m"), ("m", "n"), ("n", "y")]
    chain = RehearsalGraph.mixed("tmny", twice, [("t", "y"), ("t", "m")])
    assert adjustment(chain, (), ("t",), ("y",)).between == ()
    behind = RehearsalGraph.mixed("tmny", twice, [("t", "y"), ("m", "n")])
    assert adjustment(behind, (), ("t",), ("y",)).between == ("n",)


@pytest.mark.parametrize(
    ("edges", "hidden", "says"),
    [
        ([*FRONT_DOOR, ("t", "y")], [("t", "y")], "t acts on y directly"),
        (FRONT_DOOR, [("t", "y"), ("t", "m")], "hidden causes join what lies between, m, to t or y"),
        (FRONT_DOOR, [("t", "y"), ("m", "y")], "hidden causes join what lies between, m, to t or y"),
    ],
)
def test_what_shuts_the_front_door_is_named(edges, hidden, says):
    found = adjustment(RehearsalGraph.mixed("xtmy", edges, hidden), ("x",), ("t",), ("y",))
    assert not found.front_door
    assert says in found.reasons[0]


CHAIN = RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["m", "x"]})


@pytest.mark.parametrize(
    ("altered", "found"), [(("a",), True), (("m",), True), (("x",), True), (("y",), True), (("a", "m"), True)]
)
def test_directed_paths_are_followed(altered, found):
    assert reaches((CHAIN,), altered, ("y",)) == found


def rows(effect, square=0.0, confounder=1.0, count=300, seed=0, offset=0.0):
    z, a, noise = torch.randn(3, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    a = a + confounder * z
    y = effect * a + square * (a.square() - 1) + confounder * z + noise
    return tuple(each.numpy() for each in (a + offset, (y + offset).unsqueeze(-1), z.unsqueeze(-1) + offset))


@pytest.mark.parametrize(("effect", "square"), [(0.5, 0.0), (0.0, 0.5), (-0.5, 0.0)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_dependence_is_found_linear_or_curved_at_any_offset(effect, square, offset):
    assert dependence(*rows(effect, square, offset=offset)) < 1e-4


def test_false_alarms_are_no_more_frequent_than_their_level():
    found = torch.tensor([dependence(*rows(0.0, seed=seed, count=80)) for seed in range(100)])
    assert float((found < 0.05).double().mean()) <= 0.08
    assert float(found.min()) > 1e-3


CURVED = {
    "waves": lambda z, w: (torch.sin(3 * z), torch.sin(3 * z)),
    "a step": lambda z, w: (torch.sin(2 * z), (z > 0.5).double()),
    "a product": lambda z, w: (z * w, z * w),
}


@pytest.mark.parametrize("kind", CURVED)
@pytest.mark.parametrize("seed", range(2))
def test_covariates_that_act_in_curves_are_no_evidence_against_the_graph(kind, seed):
    z, w, one, other = torch.randn(4, 400, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    a, y = CURVED[kind](z, w)
    given = torch.stack([z, w], -1).numpy()
    assert dependence((a + 0.3 * one).numpy(), (y + 0.3 * other).unsqueeze(-1).numpy(), given) > 1e-3


def test_too_few_rows_and_constants_are_no_evidence():
    a, y, z = rows(1.0, count=15)
    assert dependence(a, y, z) == 1.0
    draws = np.random.default_rng(0).standard_normal((50, 1))
    assert dependence(np.ones(50), draws, np.zeros((50, 0))) == 1.0


@EXAMPLES
@given(st.integers(0, 10**6), st.booleans())
def test_each_missing_arrow_has_a_set_that_separates_wherever_there_is_one(seed, bows):
    graph = drawn(seed, bows)[0]
    whole = nx.DiGraph(graph.edges)
    whole.add_nodes_from(graph.names)
    whole.add_edges_from((pair, end) for pair in graph.bidirected for end in pair)
    found = {frozenset(ends): given for *ends, given in missing_arrows(graph)}
    for one, other in combinations(graph.names, 2):
        rest = [name for name in graph.names if name not in (one, other)]
        sets = chain.from_iterable(combinations(rest, size) for size in range(len(rest) + 1))
        pair = frozenset((one, other))
        if pair in found:
            assert nx.is_d_separator(whole, {one}, {other}, set(found[pair]))
        else:
            assert not any(nx.is_d_separator(whole, {one}, {other}, set(each)) for each in sets)
