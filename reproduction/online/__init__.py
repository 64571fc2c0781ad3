"""The study of rounds that learn from each other: structural rehearsal models and reinforcement learning."""
