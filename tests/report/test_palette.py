"""The pages' colours can be read, light and dark: what WCAG 2 asks for at level AA."""

from __future__ import annotations

import itertools

import pytest

from kernelexp.report.site import drawing

SCHEMES = ("light", "dark")
TEXTS = ("fg", "dim", "link", "good", "bad", "warn", "info")
SHADES = (("fg", "h1"), ("fg", "h2"), ("h3-text", "h3"), ("h5-text", "h5"))
"""A figure and the shade that it stands on; on h4 it is black in both schemes."""
SERIES = ("s0", "s1", "s2", "s3")


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_colour_of_text_can_be_read_on_both_backgrounds(scheme: str) -> None:
    colours = drawing.palette(scheme)
    low = {
        (text, ground): round(contrast(colours[text], colours[ground]), 2)
        for text, ground in itertools.product(TEXTS, ("bg", "soft"))
        if contrast(colours[text], colours[ground]) < 4.5
    }
    assert low == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_figure_can_be_read_on_every_shade_of_heat(scheme: str) -> None:
    colours = drawing.palette(scheme)
    pairs = {(text, shade): contrast(colours[text], colours[shade]) for text, shade in SHADES}
    pairs["black", "h4"] = contrast("#000", colours["h4"])
    assert {pair: value for pair, value in pairs.items() if value < 4.5} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_series_stands_out_from_the_background(scheme: str) -> None:
    colours = drawing.palette(scheme)
    low = {name: contrast(colours[name], colours["bg"]) for name in SERIES}
    assert {name: value for name, value in low.items() if value < 3} == {}


def test_the_schemes_are_two_palettes_of_the_same_names() -> None:
    light, dark = map(drawing.palette, SCHEMES)
    assert light.keys() == dark.keys()
    assert light["bg"] != dark["bg"]
