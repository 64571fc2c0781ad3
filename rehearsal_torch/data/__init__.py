"""Data: tables, episodes, tasks, decision contexts, decisions and trials."""
