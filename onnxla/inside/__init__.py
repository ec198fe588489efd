"""What the compiler made of a module on its way to a program, to be looked at: plan, kernels, their code."""
