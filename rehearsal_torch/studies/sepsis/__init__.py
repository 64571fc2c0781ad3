"""The study of counterfactually optimal action sequences (sepsis)."""
