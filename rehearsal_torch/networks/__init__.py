"""Networks with guarantees."""
