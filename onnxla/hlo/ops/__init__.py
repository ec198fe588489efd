"""The operations, one class each; the files group them by what they are about."""
