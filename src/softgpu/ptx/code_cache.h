// Object code on disk, by content: a kernel is compiled once on a machine.
#pragma once

#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <string>

namespace tutti::softgpu::ptx {

/// In SOFTGPU_PTX_CACHE, or else $XDG_CACHE_HOME/tutti/ptx, or else ~/.cache/tutti/ptx; nowhere if the setting is
/// empty, there is no home, or a folder cannot be made. What cannot be read or written is as if it were not there.
class CodeCache {
 public:
  CodeCache();
  /// `name` is any text that says what the code was made from.
  std::unique_ptr<llvm::MemoryBuffer> find(const std::string& name) const;
  void keep(const std::string& name, const llvm::MemoryBuffer& object) const;

 private:
  std::string fileOf(const std::string& name) const;
  std::string folder_;
};

}  // namespace tutti::softgpu::ptx
