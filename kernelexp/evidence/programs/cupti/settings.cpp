#include "settings.hpp"

#include <cxxabi.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace captor {
namespace {

// f<float>(int*) without its parameters: f<float>; the depth tells the brackets of a template, and
// (anonymous namespace) is not a list of parameters.
std::string without_parameters(const std::string& text) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += (text[at] == '<') - (text[at] == '>');
    if (text[at] == '(' && depth == 0 && at && text.compare(at, 11, "(anonymous ")) {
      return text.substr(0, at);
    }
  }
  return text;
}

std::string without_spaces(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

std::string without_namespaces(const std::string& text) {
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    depth += (text[at] == '<') - (text[at] == '>');
    if (depth == 0 && text[at] == ':' && text[at + 1] == ':') begin = at + 2;
  }
  return text.substr(begin);
}

// The symbol, and what a person may call it.
std::vector<std::string> names_of(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string whole = status == 0 && text ? text : symbol;
  std::free(text);
  if (whole.compare(0, 5, "void ") == 0) whole = whole.substr(5);
  whole = without_spaces(without_parameters(whole));
  const std::string own = without_namespaces(whole);
  return {symbol, whole, own, own.substr(0, own.find('<'))};
}

bool matches(const std::string& pattern, const std::string& symbol) {
  const std::string wanted = without_spaces(pattern);
  for (const std::string& name : names_of(symbol)) {
    if (name == wanted || fnmatch(wanted.c_str(), name.c_str(), FNM_CASEFOLD) == 0) return true;
  }
  return false;
}

Settings read() {
  Settings result;
  const char* folder = std::getenv("KERNELEXP_CAPTURE");
  if (!folder) return result;
  std::ifstream file(std::string(folder) + "/settings");
  std::string word;
  while (file >> word) {
    if (word == "limit") {
      file >> result.limit;
    } else if (word == "launches") {
      Range range;
      file >> range.first >> range.last;
      result.launches.push_back(range);
    } else if (word == "kernel") {
      Wanted wanted;
      file >> wanted.first >> wanted.count >> std::ws;
      std::getline(file, wanted.pattern);
      result.kernels.push_back(wanted);
    }
  }
  result.folder = folder;
  return result;
}

}  // namespace

bool Settings::may_want(const std::string& symbol) const {
  if (kernels.empty()) return !launches.empty();
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const Wanted& wanted) { return matches(wanted.pattern, symbol); });
}

std::vector<size_t> Settings::patterns_of(const std::string& symbol) const {
  std::vector<size_t> result;
  for (size_t index = 0; index < kernels.size(); ++index) {
    if (matches(kernels[index].pattern, symbol)) result.push_back(index);
  }
  return result;
}

bool Settings::wants(const std::string& symbol, uint64_t number, uint64_t launch) const {
  const bool in_range = launches.empty() ||
                        std::any_of(launches.begin(), launches.end(), [&](const Range& range) {
                          return range.first <= launch && launch <= range.last;
                        });
  if (!in_range || kernels.empty()) return in_range && captures();
  return std::any_of(kernels.begin(), kernels.end(), [&](const Wanted& wanted) {
    return wanted.first <= number && number - wanted.first < wanted.count &&
           matches(wanted.pattern, symbol);
  });
}

const Settings& settings() {
  static const Settings result = read();
  return result;
}

}  // namespace captor
