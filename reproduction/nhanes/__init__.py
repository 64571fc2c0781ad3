"""The NHANES generator: fitted to complete cases of the CDC's public files, and compared with them."""
