"""A CUDA source is cut into its top-level declarations, and some of them are left out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies

from kernelexp.services.adopt import declarations

SOURCE = r"""#include "near.h"
#include <far.h>
// a comment with { and "
#define TWO(x) \
    { x; x; }
namespace deep {
template <typename T = int, int N = 4>
struct Pair { T a = {}; T b; };
__device__ int twice(int x) { return 2 * x; }
static const int TABLE[] = {1, 2};
template <int N, typename T>
__global__ void __launch_bounds__(N * 2, 1) first(const T *__restrict__ x,
    Pair<T, 2> p, int (&n)[4]) {
    const char* text = "}"; char c = '}';
}
}  // namespace deep
extern "C" __global__ void second(float* out, int rows) { out[0] = rows; }
int main() {
    deep::first<1><<<1, 1>>>();
    return R"(})"[0];
}
BIND(one)
BIND(two)
MODULE(name, m) { m.def("x"); }
"""


def named(text: str) -> dict[str, declarations.Declaration]:
    return {item.kernel: item for item in declarations.read(text) if item.kernel}


def test_kernels_have_names_parameters_and_lines() -> None:
    result = named(SOURCE)
    assert set(result) == {"first", "second"}
    assert result["first"].template
    assert not result["second"].template
    assert result["first"].parameters == (
        "const T * __restrict__ x",
        "Pair < T , 2 > p",
        "int ( & n ) [ 4 ]",
    )
    assert result["second"].parameters == ("float * out", "int rows")
    assert (result["first"].first_line, result["first"].last_line) == (11, 15)


def test_a_default_value_is_no_part_of_a_parameter() -> None:
    text = "__global__ void scan(int* data, int* sums = NULL, float by = f(1, 2)) {}"
    assert named(text)["scan"].parameters == ("int * data", "int * sums", "float by")


def test_declarations_end_where_they_end_in_cpp() -> None:
    parts = [SOURCE[item.first : item.end].split("(")[0] for item in declarations.read(SOURCE)]
    assert [part.splitlines()[0] for part in parts] == [
        '#include "near.h"',
        "#include <far.h>",
        "template <typename T = int, int N = 4>",
        "__device__ int twice",
        "static const int TABLE[] = {1, 2};",
        "template <int N, typename T>",
        'extern "C" __global__ void second',
        "int main",
        "BIND",
    ]


def test_what_is_left_out_leaves_its_lines_and_directives() -> None:
    text = "int a;\nvoid host() {\n#if X\n  f();\n#endif\n}\nint b;\n"
    (host,) = (item for item in declarations.read(text) if "host" in item.words)
    assert declarations.blank(text, [host]) == "int a;\n\n#if X\n\n#endif\n\nint b;\n"


def test_an_indented_directive_belongs_to_no_declaration() -> None:
    text = "#if X\n\t#define A 1\n#else\n  #define A 2\n#endif\nvoid host() {}\n"
    (host,) = declarations.read(text)
    assert declarations.blank(text, [host]) == text.replace("void host() {}", "")


def test_an_include_that_is_left_out_is_a_comment() -> None:
    text = "#include <far.h>\nint a;\n"
    assert declarations.blank(text, declarations.read(text)[:1]).startswith("// #include <far.h>")


@pytest.mark.parametrize(
    "attribute", ["__cluster_dims__(2, 1, 1)", "__launch_bounds__(M(1), 2)", ""]
)
def test_attributes_are_no_names(attribute: str) -> None:
    assert set(named(f"__global__ void {attribute} k(int a) {{}}")) == {"k"}


@given(strategies.text("{}()<>;\"'/*\\\n#aR _=,", max_size=60))
def test_any_text_is_cut_without_overlap_and_keeps_its_lines(text: str) -> None:
    result = declarations.read(text)
    for one, other in pairwise(result):
        assert one.end <= other.first
    assert declarations.blank(text, result).count("\n") == text.count("\n")


def test_a_kernel_is_in_the_namespaces_around_it() -> None:
    text = """namespace a { extern "C" { __global__ void c() {} }
    inline namespace v1 { namespace { template <int N> __global__ void in() {} } }
    namespace b::c { __global__ void deep() {} } }
    __global__ void out() {}"""
    kernels = [item for item in declarations.read(text) if item.kernel]
    assert [(item.kernel, item.namespace) for item in kernels] == [
        *(("c", "a"), ("in", "a::v1"), ("deep", "a::b::c"), ("out", "")),
    ]
