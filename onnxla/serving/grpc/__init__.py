"""The Open Inference Protocol over gRPC: Triton's service, on grpcio's server for asyncio."""
