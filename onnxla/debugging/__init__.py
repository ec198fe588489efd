"""Finding faults: witnesses, comparisons, which node, pass or kernel is wrong, and the smallest model that shows it."""
