// In the place of libsoftgpu-ptx.so (SOFTGPU_PTX_LIBRARY): reads images as it does, spoils their text, and lets it go
// on from there. TUTTI_MUTANT names what is spoilt, TUTTI_MUTANT_OF the real library, TUTTI_MUTANT_TEXT a file of PTX
// that is taken for images that have all its kernels.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "softgpu/ptx/fatbin.h"
#include "softgpu/ptx_library.h"

namespace {

using namespace tutti::softgpu;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void giveUp(const std::string& why) {
  std::fprintf(stderr, "mutant: %s\n", why.c_str());
  std::_Exit(3);
}

void* real(const char* name) {
  static void* const library = ::dlopen(variable("TUTTI_MUTANT_OF").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) giveUp(std::string("the real library cannot be opened: ") + ::dlerror());
  void* function = ::dlsym(library, name);
  if (function == nullptr) giveUp(std::string("the real library has no ") + name);
  return function;
}

bool replaced(std::string& line, std::string_view what, std::string_view with) {
  const std::size_t at = line.find(what);
  if (at == std::string::npos) return false;
  line.replace(at, what.size(), with);
  return true;
}

/// `st.volatile.v2.u64 [place], {a, b};` becomes two stores of 8 bytes each.
bool halved(std::string& line) {
  constexpr std::string_view kWide = "st.volatile.v2.u64";
  const std::size_t at = line.find(kWide), open = line.find('['), close = line.find(']');
  if (at == std::string::npos || close == std::string::npos) return false;
  const std::size_t brace = line.find('{'), comma = line.find(',', brace), end = line.find('}');
  const std::string place = line.substr(open + 1, close - open - 1);
  const bool offset = place.find('+') != std::string::npos;
  const std::string second = offset ? place.substr(0, place.find('+') + 1) +
                                          std::to_string(std::atoll(place.substr(place.find('+') + 1).c_str()) + 8)
                                    : place + "+8";
  const std::string before = line.substr(0, at) + "st.volatile.u64 [";
  line = before + place + "], " + line.substr(brace + 1, comma - brace - 1) + ";\n" + before + second + "], " +
         line.substr(comma + 1, end - comma - 1) + ";";
  return true;
}

/// `activemask.b32 mask;` finds all threads of the warp, whether they are together or not.
bool takenTogether(std::string& line) {
  const std::size_t end = line.find(';');
  if (!replaced(line, "activemask.b32", "mov.u32")) return false;
  line.replace(end - (std::string_view("activemask.b32").size() - std::string_view("mov.u32").size()), 1, ", -1;");
  return true;
}

bool spoilt(std::string& line, const std::string& how) {
  if (how == "release") return replaced(line, "st.release.", "st.relaxed.");
  if (how == "acquire") return replaced(line, "ld.acquire.", "ld.relaxed.");
  if (how == "global") return replaced(line, ".shared.", ".global.");
  if (how == "width") return halved(line);
  if (how == "together") return takenTogether(line);
  if (how == "none") return false;
  giveUp("TUTTI_MUTANT=" + how + " is none of release, acquire, global, width, together, none");
}

std::string spoiltText(const std::string& text) {
  const std::string how = variable("TUTTI_MUTANT");
  std::string result;
  std::size_t places = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    places += spoilt(line, how) ? 1 : 0;
    result += line + "\n";
    begin = end + 1;
  }
  std::fprintf(stderr, "mutant: %s: %zu places\n", how.c_str(), places);
  return result;
}

/// Every kernel of `part` is one of `whole`.
bool holds(const std::string& whole, const std::string& part) {
  constexpr std::string_view kEntry = ".entry ";
  for (std::size_t at = part.find(kEntry); at != std::string::npos; at = part.find(kEntry, at + 1)) {
    const std::string entry = part.substr(at, part.find('(', at) - at);
    if (whole.find(entry + "(") == std::string::npos) return false;
  }
  return true;
}

/// The image's text, or that of the file.
std::string textOf(const void* image, std::size_t bytes, std::uint32_t capability) {
  const std::string text = ptx::ptxOf(image, bytes, capability);
  std::ifstream file(variable("TUTTI_MUTANT_TEXT"));
  const std::string other((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (other.empty()) giveUp("TUTTI_MUTANT_TEXT cannot be read");
  return holds(text, other) ? other : text;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const PtxProgram* softgpuPtxLoad(std::uint32_t abiVersion, const void* image,
                                                                        std::size_t bytes, const PtxOptions* options,
                                                                        char* why, std::size_t whyBytes) {
  const std::string text = spoiltText(textOf(image, bytes, options->capability));
  const auto load = reinterpret_cast<decltype(&softgpuPtxLoad)>(real("softgpuPtxLoad"));
  return load(abiVersion, text.c_str(), 0, options, why, whyBytes);
}

__attribute__((visibility("default"))) const tutti::simt::HostKernel* softgpuPtxKernel(const PtxProgram* program,
                                                                                       std::uint32_t index, char* why,
                                                                                       std::size_t whyBytes) {
  static const auto kernel = reinterpret_cast<decltype(&softgpuPtxKernel)>(real("softgpuPtxKernel"));
  return kernel(program, index, why, whyBytes);
}

__attribute__((visibility("default"))) void softgpuPtxUnload(const PtxProgram* program) {
  reinterpret_cast<decltype(&softgpuPtxUnload)>(real("softgpuPtxUnload"))(program);
}

}  // extern "C"
