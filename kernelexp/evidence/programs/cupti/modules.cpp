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
  const void* handle = nullptr;
};

std::mutex mutex;
std::deque<Module> modules;
uint64_t seen = 0;
thread_local std::vector<Module*> loading;  // by the call that this thread is in

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

// Of a cubin as it lies in memory: to the end of what its headers name; 0 where it is none.
size_t size_of(const char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header.e_ident);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG)) return 0;
  std::memcpy(&header, image, sizeof header);
  size_t end = std::max<size_t>(header.e_shoff + size_t(header.e_shnum) * sizeof(Elf64_Shdr),
                                header.e_phoff + size_t(header.e_phnum) * sizeof(Elf64_Phdr));
  for (unsigned index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + index * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

void keep(const char* cubin, size_t size) {
  if (!settings().captures() || !cubin) return;
  std::vector<std::string> kernels = kernels_of(cubin, size);
  const bool wanted = std::any_of(kernels.begin(), kernels.end(), [](const std::string& kernel) {
    return settings().may_want(kernel);
  });
  if (!wanted) return;
  modules.push_front({std::string(cubin, size), std::move(kernels)});
  loading.push_back(&modules.front());  // adding to the front of a deque moves none of them
}

}  // namespace

void keep_module(const char* cubin, size_t size) {
  const std::lock_guard<std::mutex> lock(mutex);
  ++seen;
  keep(cubin, size);
}

void begin_loading() { loading.clear(); }

void end_loading(const void* handle, const void* image) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto* bytes = static_cast<const char*>(image);
  // A driver that loads lazily has told of nothing yet.
  if (loading.empty() && bytes) keep(bytes, size_of(bytes));
  for (Module* module : loading) module->handle = handle;
  loading.clear();
}

Modules modules_with(const std::string& symbol, const void* handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  Modules result;
  for (const Module& module : modules) {
    const auto& kernels = module.kernels;
    if (std::find(kernels.begin(), kernels.end(), symbol) == kernels.end()) continue;
    const bool own = handle && module.handle == handle && !result.chosen;
    result.cubins.insert(own ? result.cubins.begin() : result.cubins.end(), &module.cubin);
    result.chosen |= own;
  }
  return result;
}

uint64_t modules_seen() {
  const std::lock_guard<std::mutex> lock(mutex);
  return seen;
}

}  // namespace captor
