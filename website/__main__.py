"""Stages the pages of the documentation site: python -m website."""

import sys
from pathlib import Path

from website.pages import BrokenLinksError
from website.staging import staged

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    try:
        config = staged(ROOT, ROOT / "build" / "website")
    except BrokenLinksError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    command = f"python -m zensical build --strict --config-file {config.relative_to(ROOT)}"
    print(f"Pages staged; render them with: {command}")
