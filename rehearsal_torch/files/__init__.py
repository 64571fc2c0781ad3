"""Files: bounded reading of untrusted plain data, atomic writing, locks and schemas."""
