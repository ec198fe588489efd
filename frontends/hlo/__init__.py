"""HLO and StableHLO as XLA and JAX write them: text, portable bytecode and exported functions to HLO modules."""
