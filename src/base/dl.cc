#include "base/dl.h"

namespace tutti {

DlLibrary DlLibrary::open(const std::string& name, std::string* why) {
  DlLibrary library;
  library.handle_ = Handle<DlTraits>(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library.valid() && why != nullptr) {
    const char* words = ::dlerror();
    *why = words != nullptr ? words : "unknown loader error";
  }
  return library;
}

std::string libraryPathOf(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  return found.dli_fname;
}

}  // namespace tutti
