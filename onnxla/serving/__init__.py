"""The compiler and its models as a service: a repository of models behind the Open Inference Protocol.

    repository -> engine (versions, queues, batches, instances) <- protocols (HTTP, gRPC) <- server <- `onnxla serve`

The protocols turn what a client sends into an `InferRequest` and an `InferResponse` or a `ServingError` into what the
client reads; they know nothing of models. The engine knows nothing of protocols. Needs the extra `serve`.
"""
