"""What a machine can do at most, and how long a step must take there."""
