// Cubins that the driver has loaded, kept where one of their kernels may be captured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace captor {

void keep_module(uint32_t id, const char* cubin, size_t size);

// Those that have the kernel, the one that was loaded last first.
std::vector<const std::string*> modules_with(const std::string& symbol);

uint64_t modules_seen();

}  // namespace captor
