// The functions of nvrtc.h, by nvcc, which the environment's WARPSIM_NVCC names. What it makes is
// PTX, also where a cubin is asked for: the emulator's cuModuleLoadData() takes either.
#include "nvrtc.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

struct _nvrtcProgram {
  std::filesystem::path folder;  // that the source is said to be from
  std::string source, name, log, ptx;
  std::map<std::string, std::string> headers;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  bool compiled = false;
};

namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  std::string result = "'";
  for (char letter : word) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

// As nvcc has it: a virtual architecture, and the options that are nvrtc's alone left out.
std::string option(std::string word) {
  const size_t at = word.find("=sm_");
  if (word.rfind("--gpu-architecture", 0) == 0 || word.rfind("-arch", 0) == 0) {
    if (at != std::string::npos) word.replace(at, 4, "=compute_");
    return word;
  }
  static const char* kOwn[] = {"--builtin", "-default-device", "--device-as-default", "--minimal", "--time",
                               "--no-source", "-no-source", "--pch", "--std=c++03"};
  for (const char* own : kOwn) {
    if (word.rfind(own, 0) == 0) return "";
  }
  return word;
}

nvrtcResult give(size_t* size, const std::string& text) {
  *size = text.size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult give(char* to, const std::string& text) {
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}

// The variable that holds the address of what the index-th name expression names.
std::string variable(size_t index) { return "__warpsim_name_" + std::to_string(index); }

// Reads the names from these variables, and takes them out of the PTX.
void find_names(nvrtcProgram program) {
  std::string& ptx = program->ptx;
  for (size_t index = 0; index < program->expressions.size(); ++index) {
    const size_t at = ptx.find(variable(index) + "[1] = {");
    if (at == std::string::npos) continue;
    const size_t end = ptx.find(';', at), generic = ptx.find("generic(", at);
    const size_t first = generic < end ? generic + 8 : ptx.find('{', at) + 1;
    program->lowered[program->expressions[index]] = ptx.substr(first, ptx.find_first_of(")}", first) - first);
    const size_t line = ptx.rfind('\n', at) + 1;
    ptx.erase(line, end + 1 - line);
  }
}

}  // namespace

extern "C" {
const char* nvrtcGetErrorString(nvrtcResult result) {
  static const char* kNames[] = {
      "NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
      "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION",
      "NVRTC_ERROR_COMPILATION", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
      "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
      "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "NVRTC_ERROR_INTERNAL_ERROR"};
  return result >= 0 && result <= NVRTC_ERROR_INTERNAL_ERROR ? kNames[result] : "NVRTC_ERROR unknown";
}
nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13, *minor = 0;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int count,
                               const char* const* headers, const char* const* names) {
  if (!program || !source || count < 0) return NVRTC_ERROR_INVALID_INPUT;
  *program = new _nvrtcProgram;
  (*program)->source = source;
  (*program)->name = name ? fs::path(name).filename().string() : "default_program";
  const fs::path place = fs::path(name ? name : "").parent_path();
  (*program)->folder = place.empty() ? "." : place;
  for (int i = 0; i < count; ++i) (*program)->headers[names[i]] = headers[i];
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (!program || !*program) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  if (program->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  program->expressions.push_back(expression);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  const char* nvcc = std::getenv("WARPSIM_NVCC");
  char place[] = "/tmp/nvrtc-XXXXXX";
  if (!nvcc || !mkdtemp(place)) {
    program->log = "the emulator's NVRTC needs nvcc, as kernelexp exec names it";
    return NVRTC_ERROR_COMPILATION;
  }
  const fs::path folder = place;
  for (const auto& [name, text] : program->headers) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  const fs::path source = folder / (program->name + ".cu");
  std::ofstream file(source);
  file << program->source << '\n';
  for (size_t index = 0; index < program->expressions.size(); ++index) {
    file << "extern \"C\" __device__ const void* " << variable(index) << "[1] = {(const void*)(" << program->expressions[index]
         << ")};\n";
  }
  file.close();
  std::string command = quoted(nvcc) + " -ptx -lineinfo -I" + quoted(folder);
  bool beside = true;  // headers are looked for beside what the source is called
  for (int i = 0; i < count; ++i) {
    if (!std::strcmp(options[i], "--no-source-include") || !std::strcmp(options[i], "-no-source-include")) beside = false;
    const std::string word = option(options[i]);
    if (!word.empty()) command += " " + quoted(word);
  }
  if (beside) command += " -I" + quoted(program->folder);
  command += " -o " + quoted(folder / "out.ptx") + " " + quoted(source) + " > " + quoted(folder / "log") + " 2>&1";
  const int status = std::system(command.c_str());
  program->log = content(folder / "log");
  program->ptx = content(folder / "out.ptx");
  program->compiled = status == 0 && !program->ptx.empty();
  fs::remove_all(folder);
  if (!program->compiled) return NVRTC_ERROR_COMPILATION;
  find_names(program);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size) { return give(size, program->ptx); }
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* text) { return give(text, program->ptx); }
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) { return give(size, program->ptx); }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) { return give(code, program->ptx); }
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) { return give(size, program->log); }
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) { return give(log, program->log); }
nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression, const char** name) {
  const auto found = program->lowered.find(expression);
  if (!program->compiled) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  if (found == program->lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *name = found->second.c_str();
  return NVRTC_SUCCESS;
}
}
