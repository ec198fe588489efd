"""Makes `saved_models/*` and what TensorFlow gives for them (`saved_models/*.npz`).

Run by hand, in an environment with TensorFlow (2.21 made what is here):

    python tests/frontends/tensorflow/make_saved_models.py
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

import tensorflow as tf

FOLDER = Path(__file__).parent / "saved_models"
RAW = tf.raw_ops
STEPS = 100


def batches(steps: int, size: int = 16) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images of four classes: noise, and a bright quarter that tells the class."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(steps):
        labels = rng.integers(0, 4, size).astype(np.int32)
        images = rng.normal(0, 0.3, (size, 8, 8, 1)).astype(np.float32)
        for image, label in zip(images, labels, strict=True):
            image[4 * (label // 2) : 4 * (label // 2) + 4, 4 * (label % 2) : 4 * (label % 2) + 4] += 1
        found.append((images, labels))
    return found


def save(name: str, module: tf.Module, signatures: dict[str, Any], results: dict[str, Any]) -> None:
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    tf.saved_model.save(module, str(FOLDER / name), signatures=signatures)
    (FOLDER / name / "fingerprint.pb").unlink(missing_ok=True)
    np.savez_compressed(FOLDER / f"{name}.npz", **results)


def classifier() -> None:
    """A Keras model with batch normalisation and dropout; `train` is a step of Adam, `predict` takes any batch."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, padding="same", activation="gelu"),
            keras.layers.BatchNormalization(),
            keras.layers.AveragePooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.2, seed=5),
            keras.layers.Dense(4),
        ]
    )
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    module = tf.Module()
    module.model, module.optimizer = model, optimizer
    module.seeds = [layer.seed_generator.state._value for layer in model.layers if hasattr(layer, "seed_generator")]

    @tf.function(input_signature=[tf.TensorSpec((16, 8, 8, 1)), tf.TensorSpec((16,), tf.int32)])
    def train(images: tf.Tensor, labels: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return {"loss": loss}

    @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 1))])
    def predict(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": model(images, training=False)}

    module.train, module.predict = train, predict
    images = batches(1)[0][0]
    before = predict(tf.constant(images))["logits"].numpy()
    # What is saved must be as it is before the first step.
    shutil.rmtree(FOLDER / "classifier", ignore_errors=True)
    tf.saved_model.save(module, str(FOLDER / "classifier"), signatures={"train": train, "predict": predict})
    (FOLDER / "classifier" / "fingerprint.pb").unlink(missing_ok=True)
    losses = [float(train(tf.constant(x), tf.constant(y))["loss"]) for x, y in batches(STEPS)]
    after = predict(tf.constant(images))["logits"].numpy()
    np.savez_compressed(FOLDER / "classifier.npz", losses=losses, before=before, after=after)


OPTIMIZERS: dict[str, tuple[Any, int, dict[str, float]]] = {
    "sgd": (RAW.ResourceApplyGradientDescent, 0, {"alpha": 0.1}),
    "momentum": (RAW.ResourceApplyMomentum, 1, {"lr": 0.1, "momentum": 0.9, "use_nesterov": True}),
    "keras_momentum": (RAW.ResourceApplyKerasMomentum, 1, {"lr": 0.1, "momentum": 0.9}),
    "adam": (
        RAW.ResourceApplyAdam,
        2,
        {"beta1_power": 0.9, "beta2_power": 0.999, "lr": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7},
    ),
    "ada_max": (
        RAW.ResourceApplyAdaMax,
        2,
        {"beta1_power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7},
    ),
    "rms_prop": (RAW.ResourceApplyRMSProp, 2, {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-7}),
    "centered": (RAW.ResourceApplyCenteredRMSProp, 3, {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-2}),
    "adagrad": (RAW.ResourceApplyAdagrad, 1, {"lr": 0.1}),
    "adagrad_v2": (RAW.ResourceApplyAdagradV2, 1, {"lr": 0.1, "epsilon": 1e-7}),
    "adadelta": (RAW.ResourceApplyAdadelta, 2, {"lr": 0.1, "rho": 0.9, "epsilon": 1e-6}),
}
SLOTS = {
    "momentum": ["accum"],
    "adam": ["m", "v"],
    "ada_max": ["m", "v"],
    "rms_prop": ["ms", "mom"],
    "centered": ["mg", "ms", "mom"],
    "adagrad": ["accum"],
    "adagrad_v2": ["accum"],
    "adadelta": ["accum", "accum_update"],
    "keras_momentum": ["accum"],
    "sgd": [],
}
GRADIENT = {"sgd": "delta"}


def optimizers() -> None:
    """A variable for each optimizer, which goes along a gradient that is given."""
    rng = np.random.default_rng(5)
    module = tf.Module()
    start = rng.normal(size=(3, 4)).astype(np.float32)
    module.values = {}
    module.slots = {}
    for name, slots in SLOTS.items():
        module.values[name] = tf.Variable(start, name=name)
        module.slots[name] = [tf.Variable(np.full((3, 4), 0.1, np.float32), name=f"{name}_{s}") for s in slots]
    module.count = tf.Variable(0, name="count")

    @tf.function(input_signature=[tf.TensorSpec((3, 4))])
    def step(gradient: tf.Tensor) -> dict[str, tf.Tensor]:
        module.count.assign_add(1)
        for name, (operation, _, numbers) in OPTIMIZERS.items():
            slots = {s: v.handle for s, v in zip(SLOTS[name], module.slots[name], strict=True)}
            operation(var=module.values[name].handle, **slots, **numbers, **{GRADIENT.get(name, "grad"): gradient})
        return {"count": module.count.read_value()}

    module.step = step
    gradients = rng.normal(size=(5, 3, 4)).astype(np.float32)
    save("optimizers", module, {"step": step}, {})
    for g in gradients:
        step(tf.constant(g))
    results = {f"value:{n}": v.numpy() for n, v in module.values.items()}
    np.savez_compressed(FOLDER / "optimizers.npz", gradients=gradients, **results)


def effects() -> None:
    """Variables changed inside of a loop and of a branch; rows of one scattered to; a random number each run."""
    module = tf.Module()
    module.total = tf.Variable(np.zeros(3, np.float32), name="total")
    module.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), name="table")
    module.constant = tf.Variable(np.full(3, 2.0, np.float32), name="constant")

    @tf.function(input_signature=[tf.TensorSpec((3,)), tf.TensorSpec((), tf.int32)])
    def run(x: tf.Tensor, times: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in tf.range(times):
            module.total.assign_add(x * module.constant)
        if tf.reduce_sum(x) > 0.0:
            module.table.scatter_update(tf.IndexedSlices(module.total[tf.newaxis], [1]))
        else:
            module.table.scatter_add(tf.IndexedSlices(x[tf.newaxis], [2]))
        noise = RAW.RandomUniform(shape=(2,), dtype=tf.float32, seed=3, seed2=4)
        return {"row": tf.gather(module.table, times % 4), "noise": noise}

    module.run = run
    inputs = [
        (np.array([1, 2, 3], np.float32), 3),
        (np.array([-1, 0, 0.5], np.float32), 2),
        (np.array([0, 1, 0], np.float32), 0),
    ]
    save("effects", module, {"run": run}, {})
    results = [run(tf.constant(x), tf.constant(n)) for x, n in inputs]
    np.savez_compressed(
        FOLDER / "effects.npz",
        x=np.array([x for x, _ in inputs]),
        times=np.array([n for _, n in inputs], np.int32),
        row=np.array([r["row"] for r in results]),
        noise=np.array([r["noise"] for r in results]),
        total=module.total.numpy(),
        table=module.table.numpy(),
    )


def first_version() -> None:
    """A SavedModel of TensorFlow 1: variables are references, and a restore operation names their keys."""
    v1 = tf.compat.v1
    shutil.rmtree(FOLDER / "first_version", ignore_errors=True)
    graph = tf.Graph()
    with graph.as_default(), v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.float32, (None, 3), "x")
        target = v1.placeholder(tf.float32, (None, 2), "target")
        w = v1.get_variable(
            "w", initializer=tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2) / 6), use_resource=False
        )
        c = v1.get_variable("c", initializer=tf.constant([0.5, -0.5]), use_resource=False)
        y = tf.matmul(x, w) + c
        loss = tf.reduce_mean(tf.square(y - target))
        train = v1.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        with tf.control_dependencies([train]):
            after = tf.identity(loss)
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(FOLDER / "first_version"))
        signature = v1.saved_model.predict_signature_def
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": signature({"x": x}, {"y": y}),
                "train": signature({"x": x, "target": target}, {"loss": after}),
            },
        )
        builder.save()
        rng = np.random.default_rng(9)
        feeds = rng.normal(size=(4, 5, 3)).astype(np.float32), rng.normal(size=(4, 5, 2)).astype(np.float32)
        before = session.run(y, {x: feeds[0][0]})
        losses = [session.run(after, {x: a, target: t}) for a, t in zip(*feeds, strict=True)]
        result = {"x": feeds[0], "target": feeds[1], "y": before, "losses": losses, "w": session.run(w)}
    np.savez_compressed(FOLDER / "first_version.npz", **result)


def tables() -> None:
    """Hash tables that files among the assets fill: keys and values as columns, whole lines and line numbers."""
    lookup, whole, number = tf.lookup, tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    folder = Path(tempfile.mkdtemp())
    (folder / "ids.txt").write_text("30\n10\n20\n-5")
    (folder / "pairs.csv").write_bytes(b"3,1.5,x\r\n-7,2.25,y\r\n11,-.5e1,z\r\n")
    (folder / "words.txt").write_text("cat\ndog\nbird\n")

    def table(file: str, key: Any, place: Any, value: Any, column: Any, default: Any, **how: Any) -> Any:
        filled = lookup.TextFileInitializer(str(folder / file), key, place, value, column, **how)
        return lookup.StaticHashTable(filled, default)

    module = tf.Module()
    module.places = table("ids.txt", tf.int64, whole, tf.int64, number, -1)
    module.ids = table("ids.txt", tf.int64, number, tf.int64, whole, -1, vocab_size=3)
    module.pairs = table("pairs.csv", tf.int64, 0, tf.float32, 1, 9.0, delimiter=",")
    module.words = table("words.txt", tf.string, whole, tf.int64, number, -1)
    module.texts = table("words.txt", tf.int64, number, tf.string, whole, "?")

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int64)])
    def numbers(x: tf.Tensor) -> dict[str, tf.Tensor]:
        known = module.words.lookup(tf.constant(["dog", "cow", "", "bird"]))
        found = {"place": module.places.lookup(x), "id": module.ids.lookup(x), "pair": module.pairs.lookup(x)}
        return {**found, "size": module.ids.size(), "known": known}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string), tf.TensorSpec((2,), tf.int64)])
    def strings(s: tf.Tensor, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"place": module.words.lookup(s), "text": module.texts.lookup(x), "unique": tf.unique(x)[0]}

    module.numbers, module.strings = numbers, strings
    x = np.array([10, 3, 0, -7, 1, 30, 11, 99, 2, -5], np.int64)
    results = {name: value.numpy() for name, value in numbers(tf.constant(x)).items()}
    save("tables", module, {"numbers": numbers, "strings": strings}, {"x": x, **results})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for make in (classifier, optimizers, effects, first_version, tables):
        make()
