"""The Open Inference Protocol over HTTP: KServe's routes with Triton's extensions, on Starlette and uvicorn."""
