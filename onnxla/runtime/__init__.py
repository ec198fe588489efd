"""What a compiled model needs at run time."""
