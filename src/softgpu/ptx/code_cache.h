// Object code on disk, by content: a kernel is compiled once on a machine.
#pragma once

#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <string>
#include <string_view>

namespace tutti::softgpu::ptx {

/// The SHA-256 of a text, in hexadecimal.
std::string sha256(std::string_view text);

/// Files in a folder, which is made if need be; an empty name is no folder. What cannot be read or written is as if it
/// were not there. Any number of processes.
class CodeCache {
 public:
  explicit CodeCache(std::string folder);
  /// `name` is any text that says what the code was made from. What made it, this library's own build, counts as well.
  std::unique_ptr<llvm::MemoryBuffer> find(const std::string& name) const;
  /// Also removes, once in the life of this object, what nobody found for a month.
  void keep(const std::string& name, const llvm::MemoryBuffer& object);

 private:
  std::string fileOf(const std::string& name) const;
  std::string folder_;
  bool swept_ = false;
};

}  // namespace tutti::softgpu::ptx
