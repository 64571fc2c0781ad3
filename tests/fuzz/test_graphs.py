"""Graphs in every format: mutated, read, asked about, written again, and learnt beside background knowledge
that was mutated."""

import itertools

import yaml

from rehearsal_torch.graphs.formats import ENDINGS, read_graph, write_graph
from rehearsal_torch.graphs.graph_class import graph_class
from rehearsal_torch.graphs.separation import adjustment, c_separated
from rehearsal_torch.graphs.written_graph import graph_of
from tests.fuzz.commanded import LIMITS, PROCESSES, deciding, typed_in
from tests.fuzz.decisions import CONFOUNDED, REHEARSALS, rows_of
from tests.fuzz.mutations import NAMES, changed, copied, damaged, renamed, source, text_of
from tests.fuzz.verdicts import FaultError

GRAPHS = [
    *(task["graph"] for task, _ in REHEARSALS),
    {"cliques": [["weather"], ["recommend", "congestion"], ["rating"]],
     "edges": [["weather", "recommend"], ["weather", "congestion"], ["congestion", "rating"], ["recommend",
     "rating"]]},
    {"cliques": [["a"], ["b"], ["c", "d"]], "edges": [["a", "b"], ["b", "c"], ["b", "d"]], "bows": [["a",
    "b"]]},
]  # fmt: skip
BACKGROUND = {
    "tiers": [["x"], ["a", "u", "c"], ["y"]],
    "forbidden": [["u", "c"], ["c", "u"]],
    "required": [["x", "a"]],
}


def asked(graph):
    """What a graph is asked: it answers, or refuses what it is no answer to."""
    for one, other in itertools.islice(itertools.permutations(graph.names, 2), 12):
        rest = [name for name in graph.names if name not in (one, other)]
        c_separated(graph, [one], [other], rest[:1])
        if not graph.bows:
            adjustment(graph, rest[:1], [one], [other])
        graph.altered([one]).descendants([one])


def test_graphs(number, judged, tmp_path):
    rng = source("graphs", number)
    base = rng.choice(GRAPHS)
    if rng.random() < 0.2:
        names = graph_of(base).names
        base = renamed(base, dict(zip(names, rng.sample(NAMES, len(names)), strict=True)))
    ending = rng.choice(ENDINGS)
    plain = changed(rng, base, (0, 3)) if rng.random() < 0.6 else base
    file, content = tmp_path / f"graph{ending}", plain

    def work():
        nonlocal content
        if number % 3 == 0:
            graph = graph_of(copied(plain))
        else:
            if ending in (".yaml", ".yml"):
                file.write_text(
                    yaml.safe_dump(plain, sort_keys=False, allow_unicode=True),
                    encoding="utf-8",
                    errors="replace",
                )
            else:
                write_graph(graph_of(copied(plain)), file)
            content = damaged(rng, file.read_bytes()) if rng.random() < 0.7 else file.read_bytes()
            file.write_bytes(content)
            graph = read_graph(file)
        asked(graph)
        for other in ENDINGS:
            again = read_graph(write_graph(graph, tmp_path / f"again{other}"))
            if (set(again.edges), {frozenset(each) for each in again.cliques}) != (
                set(graph.edges),
                {frozenset(each) for each in graph.cliques},
            ):
                raise FaultError(f"{other} gives another graph: {graph.to_plain()} became {again.to_plain()}")

    judged(work, content)


CLASSES = [
    {"parents": {"c": ["x"], "y": ["x", "a", "u"]}, "undirected": [["u", "a"]]},
    {"parents": {"y": ["a"]}, "undirected": [["a", "b"], ["b", "c"], ["c", "d"]]},
    [{**graph, "probability": 0.5} for graph in GRAPHS[-2:-1]] * 2,
    {"class": {"notes": []}, "posterior": {"graphs": [{**GRAPHS[-1], "probability": 1.0, "votes": 0.5}]}},
]


def test_graph_classes(number, judged, tmp_path):
    rng = source("classes of graphs", number)
    plain = changed(rng, rng.choice(CLASSES), (0, 3))
    file, content = tmp_path / "graphs.yaml", plain

    def work():
        nonlocal content
        if number % 3 == 0:
            found = graph_class(copied(plain))
        else:
            text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).encode("utf-8", "replace")
            content = damaged(rng, text) if rng.random() < 0.5 else text
            file.write_bytes(content)
            found = graph_class(file)
        if abs(sum(found.weights) - 1) > 1e-9 or len(found.graphs) != len(found.weights):
            raise FaultError(f"weights {found.weights} of {len(found.graphs)} graphs")
        for index, graph in enumerate(found.graphs[:3]):
            asked(graph)
            found.described(index)

    judged(work, content)


def test_graphs_command(number, judged, tmp_path):
    rng = source("graphs as commands", number)
    _, table = REHEARSALS[0]
    (tmp_path / "table.csv").write_text(text_of(rows_of(table)), encoding="utf-8")
    learns = number % 2 == 0
    plain = changed(rng, BACKGROUND if learns else CONFOUNDED["graph"], (1, 2))
    whole = plain if learns else {**CONFOUNDED, "graph": plain}
    content = yaml.safe_dump(whole, sort_keys=False).encode("utf-8", "replace")
    content = damaged(rng, content) if rng.random() < 0.3 else content
    (tmp_path / "task.yaml").write_bytes(content)
    typed = (
        ["data=table.csv", "background=task.yaml", "resamples=2", "out=run"]
        if learns
        else deciding("own_table")
    )
    judged(
        lambda: typed_in("learn_graph" if learns else "decide", typed, number < PROCESSES), content, **LIMITS
    )
