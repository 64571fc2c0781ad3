"""A finished run, of which each test damages a copy."""

from tests.toys.finished_run import made, resume, run

__all__ = ["made", "resume", "run"]
