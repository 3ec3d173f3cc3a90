// Shared libraries found at run time.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/handle.h"

namespace tutti {

struct DlTraits {
  using Type = void*;
  static Type invalid() { return nullptr; }
  static void close(Type library) { ::dlclose(library); }
};

/// Owns one dlopen()ed library. Not finding a library is often no error, so nothing here logs.
class DlLibrary {
 public:
  DlLibrary() = default;

  /// Opens `name` (file name for the loader's search, or a path) with RTLD_NOW | RTLD_LOCAL. Where that fails the
  /// result is invalid and `*why`, if given, holds the loader's words. A path that names no regular file is refused
  /// unopened: the loader would wait for a FIFO's writer.
  static DlLibrary open(const std::string& name, std::string* why = nullptr);
  /// The running program itself, with everything that it was started with.
  static DlLibrary openProgram(std::string* why = nullptr);
  /// Keeps the library loaded for the life of the process: for drivers that must not be unloaded under their threads.
  void leak() { static_cast<void>(handle_.release()); }

  bool valid() const { return handle_.valid(); }
  /// The raw handle, borrowed.
  void* get() const { return handle_.get(); }
  /// The file that the loader found; "" for the program itself or where unknown.
  std::string path() const;
  /// Address of `name`, or nullptr.
  void* symbol(const char* name) const { return valid() ? ::dlsym(handle_.get(), name) : nullptr; }
  /// The same as a function pointer: `library.function<int (*)(void)>("name")`.
  template <class F>
  F function(const char* name) const {
    return reinterpret_cast<F>(symbol(name));
  }

 private:
  static DlLibrary openFile(const char* name, std::string* why);

  Handle<DlTraits> handle_;
};

/// Path of the file that contains `address` (a function of ours: the folder of libnccl.so.2), "" if unknown.
std::string libraryPathOf(const void* address);

}  // namespace tutti
