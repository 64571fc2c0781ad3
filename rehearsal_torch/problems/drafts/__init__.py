"""Problems written as one file: the data set, warnings about it, and a first draft from a table."""
