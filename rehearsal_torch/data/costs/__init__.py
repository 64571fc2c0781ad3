"""Costs of actions: what changing them costs in a case, as tasks and problem files state it."""
