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

// The sections of a cubin; none where it is damaged.
class Elf {
 public:
  Elf(const char* bytes, size_t size) : bytes_(bytes), size_(size) {
    Elf64_Ehdr header;
    if (size < sizeof header) return;
    std::memcpy(&header, bytes, sizeof header);
    const uint64_t table = header.e_shoff, each = sizeof(Elf64_Shdr);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_shentsize != each ||
        table > size || header.e_shnum > (size - table) / each ||
        header.e_shstrndx >= header.e_shnum) {
      return;
    }
    sections.resize(header.e_shnum);
    std::memcpy(sections.data(), bytes + table, header.e_shnum * each);
    names_ = &sections[header.e_shstrndx];
  }

  std::string name(const Elf64_Shdr& section) const { return text(*names_, section.sh_name); }

  // At an offset in a table of strings.
  std::string text(const Elf64_Shdr& table, uint64_t at) const {
    if (!holds(table) || at >= table.sh_size) return "";
    const char* begin = bytes_ + table.sh_offset + at;
    return std::string(begin, strnlen(begin, table.sh_size - at));
  }

  std::vector<Elf64_Sym> symbols(const Elf64_Shdr& table) const {
    std::vector<Elf64_Sym> result(holds(table) ? table.sh_size / sizeof(Elf64_Sym) : 0);
    std::memcpy(result.data(), bytes_ + table.sh_offset, result.size() * sizeof(Elf64_Sym));
    return result;
  }

  // Bytes of a section; zeros where it has none.
  std::string content(const Elf64_Shdr& section, uint64_t at, uint64_t size) const {
    const bool stored = section.sh_type != SHT_NOBITS && holds(section);
    if (!stored || at > section.sh_size || size > section.sh_size - at) {
      return std::string(size <= size_ ? size : 0, '\0');
    }
    return std::string(bytes_ + section.sh_offset + at, size);
  }

  std::vector<Elf64_Shdr> sections;

 private:
  bool holds(const Elf64_Shdr& section) const {
    return section.sh_offset <= size_ && section.sh_size <= size_ - section.sh_offset;
  }

  const char* bytes_;
  size_t size_;
  const Elf64_Shdr* names_ = nullptr;
};

// By the names of its sections: .text.KERNEL.
std::vector<std::string> kernels_of(const char* cubin, size_t size) {
  std::vector<std::string> result;
  const Elf elf(cubin, size);
  for (const Elf64_Shdr& section : elf.sections) {
    const std::string name = elf.name(section);
    if (name.compare(0, sizeof kCode - 1, kCode) == 0) {
      result.push_back(name.substr(sizeof kCode - 1));
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

std::vector<Variable> variables_of(const std::string& cubin) {
  std::vector<Variable> result;
  const Elf elf(cubin.data(), cubin.size());
  for (const Elf64_Shdr& table : elf.sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= elf.sections.size()) continue;
    for (const Elf64_Sym& symbol : elf.symbols(table)) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= elf.sections.size()) {
        continue;
      }
      const Elf64_Shdr& section = elf.sections[symbol.st_shndx];
      const std::string place = elf.name(section);
      if (place == ".nv.global" || place == ".nv.global.init" || place == ".nv.constant3") {
        result.push_back({elf.text(elf.sections[table.sh_link], symbol.st_name),
                          elf.content(section, symbol.st_value, symbol.st_size)});
      }
    }
  }
  return result;
}

uint64_t modules_seen() {
  const std::lock_guard<std::mutex> lock(mutex);
  return seen;
}

}  // namespace captor
