"""CTAs that one SM holds at once, from what a CTA asks for."""

from __future__ import annotations

from kernelexp.facts.arch import Arch
from kernelexp.model.arm import Occupancy, Resources

WARP = 32
# Registers belong to the four schedulers, each of which serves a quarter of the warps.
_PARTITIONS = 4


def compute(arch: Arch, resources: Resources) -> Occupancy:
    """The rules of the CUDA occupancy calculator (cuda_occupancy.h): warps, CTAs, registers,
    shared memory; a cluster changes where CTAs are placed, not how many one SM holds."""
    warps = -(-resources.threads // WARP)
    limits = {
        "CTAs": arch.ctas_per_sm,
        "warps": arch.warps_per_sm // warps,
        "registers": _by_registers(arch, resources.registers, warps),
        "shared memory": _by_smem(arch, resources.static_smem_bytes + resources.dynamic_smem_bytes),
    }
    ctas = min(limits.values())
    return Occupancy(
        ctas_per_sm=ctas,
        warps_per_sm=ctas * warps,
        warps_limit=arch.warps_per_sm,
        limited_by=tuple(name for name, limit in limits.items() if limit == ctas),
    )


def _by_registers(arch: Arch, registers: int, warps: int) -> int:
    a_warp = _round_up(max(registers, 1) * WARP, arch.register_unit)
    warps_fit = arch.registers_per_sm // _PARTITIONS // a_warp * _PARTITIONS
    return warps_fit // warps


def _by_smem(arch: Arch, smem_bytes: int) -> int:
    if smem_bytes > arch.smem_per_cta_bytes:
        return 0
    a_cta = _round_up(smem_bytes + arch.smem_reserved_bytes, arch.smem_unit_bytes)
    return arch.smem_per_sm_bytes // a_cta


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
