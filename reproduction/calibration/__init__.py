"""The study of claims: what the methods claim, beside what is true."""
