"""From a model, for one set of input shapes, to a `Program`: import, cache, passes, codegen."""
