"""A small chapter, and notebooks of it that were run, with outputs as a test wants them."""

from typing import Any

from nbformat.v4 import new_output

from notebooks.text.notebook import Notebook, code_digest, notebook, outputs_digest

NAME = "multiple-gpus"
TEXT = """# A title

An introduction, and a [link](multiple-gpus-concise.md#resnet-18).

## First part

Said to all.

```{cell}
print("the same")
```

:::{only} jax mxnet
Said to two.
:::

```{cell}
print("{framework}")
```

## Second part

```{picture} three_splits()
```

```{solution} common/parallel/shards.py shard_bounds
```

```{cell}
print("at the end")
```
"""


def stream(text: str, name: str = "stdout") -> Any:
    return new_output("stream", text=text, name=name)


def ran(framework: str, **outputs: list[Any]) -> Notebook:
    """The notebook of the chapter above, with these outputs by the ends of cells' ids."""
    made = notebook(NAME, framework)
    for cell in made.cells:
        for end, some in {"setup": [stream(f"{framework} 1.0\n2 cores\n")], **outputs}.items():
            if cell.id.replace("-", "_").endswith(end):
                cell.outputs = some
    made.metadata["executed"] = {"code": code_digest(made), "outputs": outputs_digest(made)}
    return made
