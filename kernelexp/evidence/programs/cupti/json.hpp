// JSON as text: what is written here is read by kernelexp alone.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

namespace captor {

inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (unsigned char letter : text) {
    char escaped[8];
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += char(letter);
    } else if (letter < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", letter);
      result += escaped;
    } else {
      result += char(letter);
    }
  }
  return result + "\"";
}

inline std::string hexadecimal(const std::string& bytes) {
  std::string result = "\"";
  for (unsigned char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    result += two;
  }
  return result + "\"";
}

template <class Range, class Spell>
std::string listed(const Range& range, Spell spell) {
  std::string result = "[";
  for (const auto& item : range) result += (result.size() > 1 ? "," : "") + spell(item);
  return result + "]";
}

template <class Range>
std::string numbers(const Range& range) {
  return listed(range, [](auto number) { return std::to_string(number); });
}

// {"name": value, ...}; values are JSON already.
class JsonObject {
 public:
  JsonObject& add(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + value;
    return *this;
  }
  template <class Number>
  std::enable_if_t<std::is_arithmetic_v<Number>, JsonObject&> add(const char* name, Number value) {
    if constexpr (std::is_same_v<Number, bool>) return add(name, std::string(value ? "true" : "false"));
    return add(name, std::to_string(value));
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

}  // namespace captor
