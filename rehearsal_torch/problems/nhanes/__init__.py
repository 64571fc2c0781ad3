"""The NHANES glucose model: a data generator fitted to public survey data."""
