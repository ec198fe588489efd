"""HLO: the language every stage speaks. Same operations, semantics and text as XLA's HLO."""
