"""The study of counterfactually optimal action sequences on the simulated sepsis cohort."""
