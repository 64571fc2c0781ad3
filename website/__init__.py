"""The documentation site: pages staged from the repository and rendered by Zensical (`make docs`)."""
