"""The book's ResNet-18 in PyTorch; its state dict has the canonical names."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn import functional as F

from common.models.nets import BLOCKS, STAGES
from frameworks.pytorch.batch_norm import BATCH_NORMS, BatchNorm2d


class Residual(nn.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, channels: int, out: int, norm: type[BatchNorm2d]) -> None:
        super().__init__()
        stride = 1 if channels == out else 2
        self.conv1 = nn.Conv2d(channels, out, kernel_size=3, padding=1, stride=stride)
        self.bn1 = norm(out)
        self.conv2 = nn.Conv2d(out, out, kernel_size=3, padding=1)
        self.bn2 = norm(out)
        if stride > 1:
            self.conv3 = nn.Conv2d(channels, out, kernel_size=1, stride=stride)

    def forward(self, X: Tensor) -> Tensor:
        """(n, channels, rows, columns) to (n, out, rows / stride, columns / stride)."""
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        shortcut = self.conv3(X) if hasattr(self, "conv3") else X
        return F.relu(Y + shortcut)


class ResNet18(nn.Module):
    """A 3 x 3 stem without pooling, four stages of two residual blocks, a dense layer."""

    def __init__(self, width: int, batch_norm: str) -> None:
        super().__init__()
        norm = BATCH_NORMS[batch_norm]
        self.conv1 = nn.Conv2d(1, width, kernel_size=3, padding=1)
        self.bn1 = norm(width)
        channels = width
        for stage in STAGES:
            blocks: OrderedDict[str, nn.Module] = OrderedDict()
            for block in BLOCKS:
                out = width * 2 ** (stage - 1)
                blocks[f"block{block}"] = Residual(channels, out, norm)
                channels = out
            self.add_module(f"stage{stage}", nn.Sequential(blocks))
        self.fc = nn.Linear(channels, 10)

    def forward(self, X: Tensor) -> Tensor:
        """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
        Y = F.relu(self.bn1(self.conv1(X)))
        for stage in STAGES:
            Y = self.get_submodule(f"stage{stage}")(Y)
        logits: Tensor = self.fc(Y.mean(dim=(2, 3)))
        return logits


def resnet18(width: int, batch_norm: str) -> ResNet18:
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64)."""
    return ResNet18(width, batch_norm)
