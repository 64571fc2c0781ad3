"""Methods by name: the presets of ``conf``, what each can do, and the parts that are built of them."""
