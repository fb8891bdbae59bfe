"""A small chapter, and notebooks of it that were run, with outputs as a test wants them."""

from typing import Any

from nbformat.v4 import output_from_msg

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
    content = {"name": name, "text": text}
    return output_from_msg({"header": {"msg_type": "stream"}, "content": content})


def shown(**data: str) -> Any:
    named = {key.replace("_", "/").replace("svg", "svg+xml"): each for key, each in data.items()}
    content = {"data": named, "metadata": {}}
    return output_from_msg({"header": {"msg_type": "display_data"}, "content": content})


def ran(framework: str, **outputs: list[Any]) -> Notebook:
    """The notebook of the chapter above, with these outputs by the ends of cells' ids."""
    made = notebook(NAME, framework)
    for cell in made.cells:
        for end, some in {"setup": [stream(f"{framework} 1.0\n2 cores\n")], **outputs}.items():
            if cell.id.replace("-", "_").endswith(end):
                cell.outputs = some
    made.metadata["executed"] = {"code": code_digest(made), "outputs": outputs_digest(made)}
    return made
