"""Which instructions share a kernel: the parts of the fusion pass, in the order it uses them."""
