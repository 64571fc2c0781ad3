"""The verbs: what each command does once its configuration is settled."""
