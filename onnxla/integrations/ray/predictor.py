"""`OnnxlaPredictor`: what `ray.data.Dataset.map_batches` runs, one for each actor of its pool."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.integrations.ray.shared_model import SharedModel, assigned_threads
from onnxla.runtime.loading import load_compiled


class OnnxlaPredictor:
    """Runs a model on batches of columns.

    ds.map_batches(OnnxlaPredictor, fn_constructor_args=(shared,), batch_size=32, compute=ActorPoolStrategy(size=4))
    """

    def __init__(
        self,
        model: SharedModel | str,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        keep: Sequence[str] | None = None,
        num_threads: int | None = None,
    ) -> None:
        """`model` is what `share` returned, or the path of an artifact on every node. `inputs` names the column of each
        input, `outputs` the column for each output that is wanted; both are the model's own names by default. `keep`
        names columns that the result keeps, all for None. `num_threads`: by default the CPUs that Ray gave the actor.

        Raises InputError for names that the model does not have, ArtifactError where the artifact cannot run here.
        """
        if isinstance(model, SharedModel):
            self._model, self._most = model.load(num_threads=num_threads), model.max_batch_size
        else:
            self._model = load_compiled(model, num_threads=num_threads or assigned_threads())
            self._most = 0
        names = [t.name for t in self._model.get_inputs()]
        results = [t.name for t in self._model.get_outputs()]
        self._inputs = {name: name for name in names} | dict(inputs or {})
        self._outputs = {name: name for name in results} if outputs is None else dict(outputs)
        self._keep = keep
        unknown = sorted({*self._inputs} - {*names}) + sorted({*self._outputs} - {*results})
        if unknown:
            there = f"its inputs are {', '.join(names)}, its outputs {', '.join(results)}"
            raise InputError(f"the model has no {', '.join(unknown)}; {there}")

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The columns to keep, and those of the outputs. Raises InputError for columns that are missing or do not fit,
        and for outputs without a row for each of the batch."""
        missing = [column for column in self._inputs.values() if column not in batch]
        if missing:
            raise InputError(f"no column {', '.join(missing)}; there are {', '.join(batch)}")
        feeds = {name: np.asarray(batch[column]) for name, column in self._inputs.items()}
        rows = len(next(iter(batch.values())))
        results = self._run(feeds, rows)
        kept = {name: column for name, column in batch.items() if self._keep is None or name in self._keep}
        for (name, column), result in zip(self._outputs.items(), results, strict=True):
            if np.ndim(result) == 0 or len(result) != rows:
                raise InputError(f"output {name} has shape {list(np.shape(result))}, not a row for each of {rows}")
            kept[column] = result
        return kept

    def _run(self, feeds: Mapping[str, Any], rows: int) -> list[Any]:
        names, most = list(self._outputs), self._most
        if not most or rows <= most:
            return self._model.run(names, feeds)
        parts = [
            self._model.run(names, {name: array[start : start + most] for name, array in feeds.items()})
            for start in range(0, rows, most)
        ]
        return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
