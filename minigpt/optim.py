"""Muon: momentum whose update of each matrix is orthogonalised, so that every direction of it learns at one speed.

Follows Keller Jordan, "Muon: An optimizer for hidden layers in neural networks" (2024,
https://kellerjordan.github.io/posts/muon/). `torch.optim.Muon` does the same, but always in bfloat16, which a CPU
without bfloat16 units computes a hundred times slower than float32, and one matrix at a time. Here bfloat16 is a
choice, and all matrices of one shape are handled in one batched product.

Knows nothing of models: which parameters are given to it, and how their rows split into matrices, is the caller's
choice.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(
    matrices: Float[Tensor, "many rows columns"], steps: int, dtype: torch.dtype | None = None
) -> Float[Tensor, "many rows columns"]:
    """Push the singular values of each matrix towards 1, keeping its singular vectors.

    A quintic Newton–Schulz iteration with the coefficients of the Muon post: fast, and only roughly 1 (0.7 to 1.2 after
    five steps), which is all the optimiser needs.

    Args:
        matrices: The matrices, side by side.
        steps: Number of iterations, 3 to 6 are useful.
        dtype: Of the products, if not that of `matrices`, which the result has in any case.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x: Tensor = matrices.transpose(1, 2) if tall else matrices
    norms = cast(Tensor, torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True))
    x = (x / norms.clamp(min=1e-7)).to(dtype or matrices.dtype)
    for _ in range(steps):
        gram = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.transpose(1, 2) if tall else x).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """Optimise matrices by orthogonalised Nesterov momentum with decoupled weight decay."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        steps: int = 5,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Take the parameters.

        Args:
            groups: Parameter groups; all parameters of a group have one shape. `rows`, if a group has it, says how many
                rows of a parameter make one matrix (a fused projection holds several below each other).
            lr: Learning rate: the spectral size of one update of a square or wide matrix.
            momentum: Share of the running mean of gradients that is kept at a step, 0 to below 1.
            weight_decay: Share of a weight, times the learning rate, that is taken away at a step.
            steps: Newton–Schulz iterations.
            dtype: Of the products in them, if not the parameters' own; bfloat16 takes half the time where the processor
                has units for it.

        Raises:
            ValueError: If a parameter is no matrix, or a group mixes shapes or has rows that do not divide.
        """
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "steps": steps})
        self.dtype = dtype
        for group in self.param_groups:
            shapes = {tuple(parameter.shape) for parameter in group["params"]}
            if len(shapes) != 1 or len(shape := shapes.pop()) != 2:
                raise ValueError(f"a group of Muon holds matrices of one shape, got {shapes}")
            if shape[0] % group.setdefault("rows", shape[0]):
                raise ValueError(f"{shape[0]} rows cannot be split into matrices of {group['rows']} rows")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take one step down the gradients that the parameters hold."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters: list[nn.Parameter] = [p for p in group["params"] if p.grad is not None]
            if parameters:
                self._step_group(group, parameters)
        return loss

    def _step_group(self, group: dict[str, Any], parameters: list[nn.Parameter]) -> None:
        """Update the parameters of one group, all their matrices in one batch."""
        rows, columns = group["rows"], parameters[0].shape[1]
        matrices = torch.cat([self._look_ahead(parameter, group["momentum"]) for parameter in parameters])
        updates = orthogonalise(matrices.view(-1, rows, columns), group["steps"], self.dtype)
        updates *= max(1.0, rows / columns) ** 0.5
        shaped = updates.reshape(len(parameters), *parameters[0].shape)
        for parameter, update in zip(parameters, shaped, strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(update, alpha=-group["lr"])

    def _look_ahead(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        """Take the gradient into its running mean and return where Nesterov's momentum points."""
        gradient = parameter.grad
        if gradient is None:
            raise ValueError("the parameter has no gradient")
        state = self.state[parameter]
        if "mean" not in state:
            state["mean"] = torch.zeros_like(parameter)
        mean: Tensor = state["mean"]
        mean.lerp_(gradient, 1 - momentum)
        return gradient.lerp(mean, momentum)
