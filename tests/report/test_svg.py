"""Positions in an inline SVG are numbers inside the picture, whatever the figures are."""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from kernelexp.report.charts.chart import Band, ChartAxis, Mark, Plot, Series
from kernelexp.report.site import svg

values = st.floats(1e-12, 1e12) | st.sampled_from([1.0, math.nextafter(1.0, 2.0), 1e-300, 1e300])


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=30), st.booleans())
def test_every_position_is_inside_the_picture(
    found: list[tuple[float, float, float]], log: bool
) -> None:
    marks = tuple(
        Mark(x=index, y=y, low=low, high=high)
        for index, (low, y, high) in enumerate(map(sorted, found))
    )
    drawing = svg.draw(
        Plot(
            title="t",
            x=ChartAxis(label="step", categories=tuple(map(str, range(len(marks))))),
            y=ChartAxis(label="time", unit="ms", log=log),
            series=(Series(name="s", marks=marks),),
            bands=(Band(name="b", low=marks[0].y, high=marks[0].y),),
        )
    )
    shown = [tick.at for tick in (*drawing.across, *drawing.upwards)]
    for shape in drawing.shapes:
        if shape.look in ("trail", "whisker"):
            shown += map(float, re.findall(r"-?[\d.]+(?:e[+-]\d+)?", shape.path))
    assert all(0 <= item <= svg.WIDTH for item in shown)
    assert log or len(drawing.upwards) <= 12
