"""What the stages of the studies run."""

from reproduction.plan import jobs, study


def test_a_job_is_what_somebody_could_type():
    found = jobs(study("auf"), "lambdas", seeds=[3])
    assert len(found) == 25
    assert found[1].key == ("lambdas", "non_syn1", "cme_published", "lambda_h=0.2 lambda_x=0.5", "3")
    assert found[1].overrides == (
        "+experiment=auf",
        "dataset=non_syn1",
        "decision=cme_published",
        "surrogate.sharpness=10",
        "surrogate.estimator.lambda_h=0.0002",
        "surrogate.estimator.lambda_x=0.0005",
        "seed=3",
    )


def test_a_method_without_settings_is_run_once():
    names = {"worlds": ["bermuda"], "methods": ["qwz23", "none"], "settings": ["0.3", "0.9"]}
    found = jobs(study("online"), "rounds", [0], **names)
    assert [(job.method, job.setting) for job in found] == [("qwz23", "0.3"), ("qwz23", "0.9"), ("none", "")]


def test_the_plans_have_the_sizes_of_the_papers():
    auf, online = study("auf"), study("online")
    assert len(jobs(auf, "table1")) == 12 * 6 * 10 + 6 * 10 + 6 * 5
    assert {job.setting for job in jobs(auf, "eta")} == {f"eta={eta}" for eta in (3, 5, 10, 20, 50)}
    assert any("rows=100000" in job.setting for job in jobs(auf, "scalability", seeds=[0]))
    assert not any("rows=100000" in job.setting for job in jobs(auf, "scalability", seeds=[1]))
    assert len(jobs(online, "rounds", methods=["qwz23"], settings=list(online["settings"]))) == 160
    assert len(study("cbo")["groups"]["main"]) >= 8
