"""The comparison scales of the catalogue and their inverses, for drawing a noise band in a metric's own unit.

The models use the macro comparison_value; a test holds the two against each other.
"""

import numpy as np

from warehouse.report.sampling import Floats

_DEFAULT_WIDTH = {"log": 1e-12, "logit": 1e-3, "asinh": 1e-3}


def to_scale(values: Floats, scale: str, width: float | None) -> Floats | None:
    """Return values on a comparison scale; None for scales on which no band can be drawn.

    Args:
        values: In the metric's own unit; shape (n,).
        scale: identity, log, logit, asinh; any other gives None.
        width: Constant of the scale; None for its default.
    """
    c = width or _DEFAULT_WIDTH.get(scale, 0.0)
    if scale == "identity":
        return values
    if scale == "log":
        return np.log(np.maximum(values, c))
    if scale == "logit":
        p = np.clip(values, 0.0, 1.0)
        return np.log((p + c) / (1.0 - p + c))
    if scale == "asinh":
        return np.arcsinh(values / c)
    return None


def from_scale(scaled: Floats, scale: str, width: float | None) -> Floats:
    """Return values of a comparison scale in the metric's own unit; the inverse of `to_scale`."""
    c = width or _DEFAULT_WIDTH.get(scale, 0.0)
    bounded = np.clip(scaled, -700.0, 700.0)
    if scale == "log":
        return np.exp(bounded)
    if scale == "logit":
        odds = np.exp(bounded)
        return np.clip((odds * (1.0 + c) - c) / (1.0 + odds), 0.0, 1.0)
    if scale == "asinh":
        return c * np.sinh(bounded)
    return scaled


def noise_band(
    baseline: Floats, offset: Floats, sigma: Floats, scale: str, width: float | None, sigmas: float = 2.0
) -> tuple[Floats, Floats]:
    """Return lower and upper edge of where an equal run on the candidate's stack would lie.

    Args:
        baseline: Values of the baseline, in the metric's own unit; shape (n,).
        offset: Offset between the stacks on the comparison scale; shape (n,).
        sigma: Noise of the difference of equal runs on the comparison scale; shape (n,).
        scale: Comparison scale of the metric.
        width: Constant of the scale.
        sigmas: Half width of the band, in sigma.

    Returns:
        Two arrays of shape (n,); NaN where nothing is known.
    """
    with np.errstate(all="ignore"):
        middle = to_scale(baseline, scale, width)
        if middle is None:
            nothing = np.full_like(baseline, np.nan)
            return nothing, nothing
        middle = middle + np.nan_to_num(offset)
        return (
            from_scale(middle - sigmas * sigma, scale, width),
            from_scale(middle + sigmas * sigma, scale, width),
        )
