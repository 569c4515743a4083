"""Clusters: what a source launches with, and how a person says it."""

from __future__ import annotations

import pytest

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt import adopted, expressions, notation


@pytest.mark.parametrize(
    ("host", "cluster"),
    [
        ("a[0].val.clusterDim.x = CLUSTER_M * 2;\na[0].val.clusterDim.y = 1;",
         ("CLUSTER_M * 2", "1", "1")),
        ("attribute.val.clusterDim = {2, 4, 1};", ("2", "4", "1")),
        ("dim3 cluster_shape(2u, 1u);", ("2", "1", "1")),
        ("dim3 dimCluster = dim3(4, 1, 1);", ("4", "1", "1")),
        ("dim3 dimCluster(size<0>(ClusterShape{}), 1, 1);", ()),
        ("dim3 cluster(2);\nother.val.clusterDim.x = 4;", ()),
        ("dim3 block(2);", ()),
    ],
)  # fmt: skip
def test_the_cluster_of_the_host_code_is_read_where_it_is_one(
    host: str, cluster: tuple[str, ...]
) -> None:
    assert tuple(text.strip() for text in adopted.launched([host])) == cluster


def test_a_launch_may_name_its_cluster() -> None:
    shape = notation.parse("k<<<M/64, 128, cluster(2, 1), smem>>>(x)").shape
    assert (shape.grid, shape.smem, shape.cluster) == (("M/64",), "smem", ("2", "1", "1"))


@pytest.mark.parametrize("text", ["0", "2,2,2,1", "32"])
def test_a_cluster_that_no_launch_can_have_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--cluster"):
        notation.parse_cluster(text)


def test_the_size_of_a_template_s_instance_is_a_name_that_is_spelled_as_it_was() -> None:
    text = notation.parse_smem("2 * sizeof(ns::Storage<64, BN>) + sizeof(float)")
    (name,) = expressions.names_in([text])
    assert notation.spelled(name) == "sizeof(ns::Storage<64,BN>)"
    assert notation.spelled("BN") == "BN"
