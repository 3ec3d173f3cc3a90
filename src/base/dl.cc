#include "base/dl.h"

#include <link.h>

#include <string_view>

#include "base/user_file.h"

namespace tutti {

DlLibrary DlLibrary::openFile(const char* name, std::string* why) {
  DlLibrary library;
  library.handle_ = Handle<DlTraits>(::dlopen(name, RTLD_NOW | RTLD_LOCAL));
  if (!library.valid() && why != nullptr) {
    const char* words = ::dlerror();  // a text per thread
    *why = words != nullptr ? words : "unknown loader error";
  }
  return library;
}

DlLibrary DlLibrary::open(const std::string& name, std::string* why) {
  const std::string_view kind = name.find('/') != std::string::npos ? kindOfNoFile(name) : std::string_view();
  if (!kind.empty()) {
    if (why != nullptr) *why = name + ": it is " + std::string(kind) + "; name a library";
    return {};
  }
  return openFile(name.c_str(), why);
}

DlLibrary DlLibrary::openProgram(std::string* why) {
  return openFile(nullptr, why);
}

std::string DlLibrary::path() const {
  link_map* found = nullptr;
  if (!valid() || ::dlinfo(get(), RTLD_DI_LINKMAP, &found) != 0 || found == nullptr) return {};
  return found->l_name != nullptr ? found->l_name : "";
}

std::string libraryPathOf(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  return found.dli_fname;
}

}  // namespace tutti
