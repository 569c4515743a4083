"""Which smaller launches stand for a large one."""

from __future__ import annotations

from kernelexp.evidence.emulate import followed
from kernelexp.evidence.emulate.followed import FollowedLoad
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.problem import Size


def persistent(size: Size) -> FollowedLoad:
    """132 CTAs share all tiles of 64 rows."""
    return FollowedLoad(ctas=132, tiles=4 * (size["m"] // 64))


def grid(size: Size) -> FollowedLoad:
    """A CTA for 32 by 32."""
    ctas = size["rows"] // 32 * (size["columns"] // 32)
    if not ctas:
        raise ConfigurationError("launch(): grid is (0, 1, 1)")
    return FollowedLoad(ctas=ctas, tiles=ctas)


def test_a_long_loop_is_followed_twice_the_second_time_twice_as_far():
    size: Size = {"m": 928_256, "n": 768}
    chosen = followed.choose(size, persistent(size), 132, persistent)
    first, second = chosen.loads
    assert chosen.loops
    assert second.tiles == 2 * first.tiles
    assert first.is_even
    assert first.tiles_per_cta >= followed.TILES
    assert all(item["n"] == 768 for item in chosen.sizes)


def test_the_busiest_cta_has_whole_blocks():
    of_queries = FollowedLoad(ctas=132, tiles=1408 * 32, blocks=1408)
    assert of_queries.tiles_per_cta == 11 * 32


def test_fewer_blocks_than_ctas_are_shared():
    assert FollowedLoad(ctas=132, tiles=16 * 49, blocks=16).tiles_per_cta == 6


def test_a_large_grid_is_followed_as_far_as_it_must_be():
    size: Size = {"rows": 16_384, "columns": 8_192}
    chosen = followed.choose(size, grid(size), 3_168, grid)
    assert not chosen.loops
    assert chosen.loads[0].ctas >= 3_168
    assert chosen.loads[1].ctas < chosen.whole.ctas


def test_a_small_launch_is_followed_itself():
    size: Size = {"rows": 512, "columns": 512}
    chosen = followed.choose(size, grid(size), 3_168, grid)
    assert chosen.sizes == (size,)
    assert chosen.loads == (chosen.whole,)
