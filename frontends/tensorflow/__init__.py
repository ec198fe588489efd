"""Exported TensorFlow graphs to HLO: frozen GraphDefs and SavedModels, read without TensorFlow."""
