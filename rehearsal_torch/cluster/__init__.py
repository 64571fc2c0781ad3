"""A Dask cluster: connecting to one, and tasks that its workers share."""
