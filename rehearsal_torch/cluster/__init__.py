"""A Dask cluster: connecting to one, and rounds that its workers share."""
