"""`onnxla serve`: a repository of models behind HTTP and gRPC."""

from pathlib import Path
from typing import Annotated, Any

import typer

from onnxla.errors import InputError


def serve(
    repository: Annotated[
        Path, typer.Option("--repository", "-r", metavar="DIR", help="The folder of models: NAME/VERSION/model.onnx.")
    ],
    host: Annotated[str | None, typer.Option(help="Address to listen on; by default 127.0.0.1.")] = None,
    http_port: Annotated[int | None, typer.Option(help="Port of HTTP (8000); 0 for any, -1 for none.")] = None,
    grpc_port: Annotated[int | None, typer.Option(help="Port of gRPC (8001); 0 for any, -1 for none.")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Port of its own for load, unload and compile jobs.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes for each model; 0 runs them in this one.")] = None,
    control: Annotated[
        str | None, typer.Option(help="When models load: none (at the start), poll (and as files change), explicit.")
    ] = None,
    load: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Load these at the start; repeatable.")] = None,
    cache_dir: Annotated[Path | None, typer.Option(help="Folder of the compile cache.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="Bearer tokens for all calls, one a line.")] = None,
    admin_token_file: Annotated[Path | None, typer.Option(help="Bearer tokens for admin calls.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain (PEM) of HTTP and gRPC.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    max_request_bytes: Annotated[int | None, typer.Option(help="Largest request, with compression undone.")] = None,
    jobs: Annotated[bool, typer.Option(help="Whether admins may send models to be compiled.")] = True,
    store: Annotated[
        str | None, typer.Option(help="Where compile jobs keep artifacts: a folder, or s3://bucket/place.")
    ] = None,
    log: Annotated[str | None, typer.Option(help="Form of the log: text or json.")] = None,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log every request.")] = False,
    trace_endpoint: Annotated[str | None, typer.Option(metavar="URL", help="OpenTelemetry collector (OTLP).")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting: `rate=50`, `engine.poll_seconds=2`."),
    ] = None,
) -> None:
    """Serve models by the Open Inference Protocol over HTTP and gRPC, until SIGTERM or Ctrl-C."""
    try:
        from onnxla.serving.run_server import Wanted, run_server
    except ImportError as error:
        raise InputError(
            f"serving needs more packages ({error.name} is missing): pip install 'onnxla[serve]'"
        ) from None
    wanted = Wanted(with_jobs=jobs)
    for text in settings or ():
        wanted.set_text(text)
    given: dict[str, dict[str, Any]] = {
        "": {
            "host": host,
            "http_port": http_port,
            "grpc_port": grpc_port,
            "admin_port": admin_port,
            "token_file": token_file,
            "admin_token_file": admin_token_file,
            "tls_cert": tls_cert,
            "tls_key": tls_key,
            "max_request_bytes": max_request_bytes,
            "log": log,
            "log_requests": log_requests or None,
            "trace_endpoint": trace_endpoint,
        },
        "engine": {
            "repository": repository,
            "workers": workers,
            "control": control,
            "load_at_start": None if load is None else tuple(load),
            "cache_dir": None if cache_dir is None else str(cache_dir),
        },
        "jobs": {"store": store},
    }
    for part, values in given.items():
        wanted.parts[part].update({name: value for name, value in values.items() if value is not None})
    run_server(wanted)
