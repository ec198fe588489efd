"""What `training.py` asks of TensorFlow, in an interpreter that has it: export the training steps, or run one.

`export FOLDER` writes data and a SavedModel for each optimizer. `train FOLDER OPTIMIZER [--jit]` trains, prints losses
and accuracy as a line of JSON, and then the median time of as many steps as each line of its input says.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

SIZE, STEPS, KNOWN = 64, 500, 1500


def export(folder: Path) -> None:
    """The tutorial's network with its training step, once for each optimizer, and the batches."""
    digits = load_digits()
    images, labels = (digits.images / 16).astype("float32")[..., None], digits.target.astype("int32")
    order = np.random.default_rng(0)
    batches = np.stack([order.integers(0, KNOWN, SIZE) for _ in range(STEPS)])
    np.savez(folder / "data.npz", images=images, labels=labels, batches=batches)
    optimizers = {
        "sgd": keras.optimizers.SGD(0.05, momentum=0.9),
        "adagrad": keras.optimizers.Adagrad(0.05),
        "adam": keras.optimizers.Adam(0.003),
    }
    for name, optimizer in optimizers.items():
        save(folder / name, optimizer)


def save(folder: Path, optimizer: Any) -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPool2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    module = tf.Module()
    module.model, module.optimizer = model, optimizer

    @tf.function(input_signature=[tf.TensorSpec((SIZE, 8, 8, 1)), tf.TensorSpec((SIZE,), tf.int32)])
    def train(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return {"loss": loss}

    @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 1))])
    def predict(images: Any) -> Any:
        return {"logits": model(images, training=False)}

    tf.saved_model.save(module, str(folder), signatures={"train": train, "predict": predict})


def run(folder: Path, optimizer: str, jit: bool) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    data = np.load(folder / "data.npz")
    images, labels, batches = data["images"], data["labels"], data["batches"]
    model = tf.saved_model.load(str(folder / optimizer))
    signature = model.signatures["train"]
    step = tf.function(lambda x, y: signature(images=x, labels=y), jit_compile=jit)

    def loss_of(batch: Any) -> Any:
        return step(tf.constant(images[batch]), tf.constant(labels[batch]))["loss"].numpy()

    losses = [float(loss_of(batch)) for batch in batches]
    logits = model.signatures["predict"](images=tf.constant(images[KNOWN:]))["logits"].numpy()
    accuracy = float((logits.argmax(1) == labels[KNOWN:]).mean())
    print(json.dumps({"losses": losses, "accuracy": accuracy}), flush=True)
    for line in sys.stdin:
        times = []
        for batch in batches[: int(line)]:
            start = time.perf_counter()
            loss_of(batch)
            times.append(time.perf_counter() - start)
        print(json.dumps({"ms": float(np.median(times)) * 1e3}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(Path(sys.argv[2]))
    else:
        run(Path(sys.argv[2]), sys.argv[3], "--jit" in sys.argv)
