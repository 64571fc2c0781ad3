"""The clean commit that a page or a map is made from."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def clean_commit(out: Path) -> str:
    """The commit, asked for in another process: this one may import nothing of the package.

    Args:
        out: What is written, and may differ from what is committed.

    Raises:
        SystemExit: if other files do.
    """
    code = (
        "import sys; from pathlib import Path; from rehearsal_torch.cli.errors import UserError\n"
        "from rehearsal_torch.cli.job import commit\n"
        "from reproduction.commits import check_clean\n"
        "try: check_clean(Path(sys.argv[1]))\n"
        "except UserError as error: sys.exit(str(error))\n"
        "print(commit())"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if asked.returncode != 0:
        sys.exit(asked.returncode)
    return asked.stdout.strip()
