"""Problems: where observations and cases come from, and how decisions are scored."""
