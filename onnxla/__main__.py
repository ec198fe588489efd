"""`python -m onnxla` is the command `onnxla`."""

from onnxla.cli.main import main

if __name__ == "__main__":
    main()
