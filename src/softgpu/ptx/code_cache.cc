#include "softgpu/ptx/code_cache.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace tutti::softgpu::ptx {
namespace {

namespace fs = std::filesystem;

std::string sha256(llvm::StringRef text) {
  llvm::SHA256 hash;
  hash.update(text);
  return llvm::toHex(hash.final(), true);
}

std::string folderOf() {
  if (const char* given = std::getenv("SOFTGPU_PTX_CACHE")) return given;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/tutti/ptx";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::string(home) + "/.cache/tutti/ptx";
  }
  return "";
}

}  // namespace

CodeCache::CodeCache() : folder_(folderOf()) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) folder_.clear();
}

std::string CodeCache::fileOf(const std::string& name) const {
  return folder_ + "/" + sha256(name) + ".o";
}

/// A file is the code behind its own checksum: one that was cut off or damaged is none.
std::unique_ptr<llvm::MemoryBuffer> CodeCache::find(const std::string& name) const {
  if (folder_.empty()) return nullptr;
  std::ifstream file(fileOf(name), std::ios::binary);
  if (!file) return nullptr;
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr std::size_t kSum = 64;
  if (content.size() <= kSum) return nullptr;
  const llvm::StringRef code = llvm::StringRef(content).substr(kSum);
  if (sha256(code) != llvm::StringRef(content).substr(0, kSum)) return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(code, "kernel");
}

void CodeCache::keep(const std::string& name, const llvm::MemoryBuffer& object) const {
  if (folder_.empty()) return;
  // Others may write the same file: each writes its own and puts it in place whole.
  const std::string target = fileOf(name);
  const std::string own = target + "." + std::to_string(::getpid());
  std::ofstream file(own, std::ios::binary);
  const llvm::StringRef code = object.getBuffer();
  file << sha256(code);
  file.write(code.data(), static_cast<std::streamsize>(code.size()));
  file.close();
  std::error_code error;
  if (file) {
    fs::rename(own, target, error);
  } else {
    fs::remove(own, error);
  }
}

}  // namespace tutti::softgpu::ptx
