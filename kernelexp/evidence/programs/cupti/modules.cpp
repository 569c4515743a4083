#include "modules.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "settings.hpp"

namespace captor {
namespace {

struct Module {
  std::string cubin;
  std::vector<std::string> kernels;
};

std::mutex mutex;
std::deque<Module> modules;
uint64_t seen = 0;

constexpr char kCode[] = ".text.";

// By the names of its sections: .text.KERNEL.
std::vector<std::string> kernels_of(const char* cubin, size_t size) {
  std::vector<std::string> result;
  Elf64_Ehdr header;
  if (size < sizeof header) return result;
  std::memcpy(&header, cubin, sizeof header);
  const uint64_t table = header.e_shoff, each = sizeof(Elf64_Shdr);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_shentsize != each ||
      table > size || header.e_shnum > (size - table) / each ||
      header.e_shstrndx >= header.e_shnum) {
    return result;
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), cubin + table, header.e_shnum * each);
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  if (names.sh_offset > size || names.sh_size > size - names.sh_offset) return result;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= names.sh_size) continue;
    const char* name = cubin + names.sh_offset + section.sh_name;
    const std::string text(name, strnlen(name, names.sh_size - section.sh_name));
    if (text.compare(0, sizeof kCode - 1, kCode) == 0) {
      result.push_back(text.substr(sizeof kCode - 1));
    }
  }
  return result;
}

}  // namespace

void keep_module(uint32_t, const char* cubin, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  ++seen;
  if (!settings().captures() || !cubin) return;
  std::vector<std::string> kernels = kernels_of(cubin, size);
  const bool wanted = std::any_of(kernels.begin(), kernels.end(), [](const std::string& kernel) {
    return settings().may_want(kernel);
  });
  if (wanted) modules.push_front({std::string(cubin, size), std::move(kernels)});
}

std::vector<const std::string*> modules_with(const std::string& symbol) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<const std::string*> result;
  for (const Module& module : modules) {  // a deque: adding to its front moves none of them
    const auto& kernels = module.kernels;
    if (std::find(kernels.begin(), kernels.end(), symbol) != kernels.end()) {
      result.push_back(&module.cubin);
    }
  }
  return result;
}

uint64_t modules_seen() {
  const std::lock_guard<std::mutex> lock(mutex);
  return seen;
}

}  // namespace captor
