"""Records of action sequences, and the hidden causes that would overturn them."""
