from rehearsal_torch.problems.nhanes.modules import CONTEXT, OUTCOMES, VARIABLES, influence_graph


def test_the_graph_is_the_papers():
    graph = influence_graph()
    assert set(graph.names) == set(VARIABLES)
    assert graph.clique("HbA1c") == OUTCOMES
    assert all(len(influence_graph(paired=False).clique(name)) == 1 for name in VARIABLES)
    assert graph.parents(OUTCOMES) == tuple(
        name for name in graph.names if name not in (*OUTCOMES, "CarbIntake", "DBP")
    )
    for name in VARIABLES:
        if name not in CONTEXT:
            assert set(CONTEXT) <= set(graph.parents(name))
    assert set(graph.parents("HDL")) - set(CONTEXT) == {"BMI", "CalIntake"}
    assert set(graph.parents("Sedentary_min")) == set(CONTEXT)
    assert graph.descendants(["CarbIntake"]) == {"CarbIntake"}
    assert set(influence_graph(chain=True).clique("Age")) == set(CONTEXT)
