"""What compile jobs are told before they start, each with its default."""

from dataclasses import dataclass, field
from pathlib import Path

from onnxla.config import ChildLimits
from onnxla.errors import InputError
from onnxla.given import number, whole_number


@dataclass(frozen=True)
class JobSettings:
    """Sizes in bytes, times in seconds. Raises InputError for values that make no sense."""

    folder: Path | None = None
    """Folder of this server for models while they compile, and for copies of a store elsewhere; by default a new one
    of the system's for temporary files."""
    store: str = ""
    """Where artifacts are kept for all servers that share it: a folder, or a URL that fsspec knows (`s3://bucket/x`).
    By default `folder`, which must be given for artifacts to outlive the server."""
    store_bytes: int = 64 << 30
    """Size of the files on this machine above which those used longest ago go."""
    store_secret_file: Path | None = None
    """File with a secret that all servers of a store share: what others have written there is not used."""
    share_programs: bool = True
    """Whether the code for one set of shapes is kept too, for other models and other lists of sizes that need it."""
    running: int = 2
    """Most compiles at once."""
    waiting: int = 16
    """Most uploads and compiles that wait; beyond it clients are told to come later (429)."""
    model_bytes: int = 8 << 30
    """Largest model, as sent."""
    unpacked_bytes: int = 16 << 30
    """Largest archive, unpacked."""
    unpacked_files: int = 20_000
    """Most files and folders of an archive."""
    kept_jobs: int = 256
    """Most jobs that have ended which clients can still ask for; their artifacts are kept by the store."""
    kept_seconds: float = 3600.0
    """How long they can."""
    limits: ChildLimits = field(default_factory=ChildLimits.from_environment)
    """What each compile may take."""

    def __post_init__(self) -> None:
        for name, least in (("running", 1), ("waiting", 0), ("kept_jobs", 1), ("store_bytes", 0)):
            whole_number(getattr(self, name), name, least)
        for name in ("model_bytes", "unpacked_bytes", "unpacked_files"):
            whole_number(getattr(self, name), name, 1)
        if not 0 <= number(self.kept_seconds, "kept_seconds") < float("inf"):
            raise InputError(f"kept_seconds={self.kept_seconds!r}: a number of seconds is needed")

    def secret(self) -> bytes:
        """The servers' common secret; empty without one. Raises InputError."""
        if self.store_secret_file is None:
            return b""
        try:
            secret = self.store_secret_file.read_bytes().strip()
        except OSError as error:
            raise InputError(f"{self.store_secret_file} cannot be read: {error.strerror}") from error
        if len(secret) < 16:
            raise InputError(f"{self.store_secret_file} has fewer than 16 characters, which can be guessed")
        return secret
