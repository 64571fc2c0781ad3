"""Slips of the fingers: answered at once, in a sentence."""

import subprocess
import sys

import pytest

from tests.scripts.typing_in import surroundings, typed


@pytest.mark.parametrize("arguments", [["seeed=1"], ["-m", "seed=0,1", "decision=astar,gredy"]])
def test_slips_are_answered_at_once(tmp_path, arguments):
    # Processor time, and the least of three: what the machine does besides must not decide the test.
    answers = [typed(tmp_path, "train", *arguments) for _ in range(3)]
    for answer in answers:
        assert (answer.code, len(answer.err.strip().splitlines())) == (2, 1), answer.err
    assert min(answer.processor for answer in answers) < 2


@pytest.mark.parametrize("script", ["train", "collect"])
def test_help_is_quick(tmp_path, script):
    answers = [typed(tmp_path, script, "--help") for _ in range(3)]
    for answer in answers:
        assert answer.code == 0, answer.err
        assert f"python scripts/{script}.py" in answer.out
    # The least of three: on a busy machine, processes that share its caches also take more processor time.
    assert min(answer.processor for answer in answers) < 2


def test_checking_needs_no_torch(tmp_path):
    code = (
        "import sys\nfrom rehearsal_torch.cli.main import main\nfrom rehearsal_torch.cli.main import train\n"
    )
    code += (
        "assert main(train, ['seeed=1']) == main(train, []) == 2\nprint(sorted({'torch', 'lightning', "
        "'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
