"""Methods: the presets of ``conf``, what each can do, what is built of them, and the choice among them."""
