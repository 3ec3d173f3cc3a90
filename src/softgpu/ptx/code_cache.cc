#include "softgpu/ptx/code_cache.h"

#include <dlfcn.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace tutti::softgpu::ptx {
namespace {

namespace fs = std::filesystem;

constexpr auto kMonth = std::chrono::hours(24 * 30);
constexpr std::string_view kSuffix = ".o";

/// Another build of this library makes other code of the same text: its file has another size or time.
const std::string& ownBuild() {
  static const std::string kBuild = [] {
    Dl_info info = {};
    struct stat file = {};
    static const int here = 0;
    if (::dladdr(&here, &info) == 0 || ::stat(info.dli_fname, &file) != 0) return std::string();
    return std::to_string(file.st_size) + " " + std::to_string(file.st_mtim.tv_sec) + " " +
           std::to_string(file.st_mtim.tv_nsec) + "\n";
  }();
  return kBuild;
}

void removeOld(const std::string& folder) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator file(folder, error); !error && file != fs::directory_iterator(); file.increment(error)) {
    std::error_code gone;  // somebody else may be faster
    const auto written = fs::last_write_time(file->path(), gone);
    if (!gone && now - written > kMonth) fs::remove(file->path(), gone);
  }
}

}  // namespace

std::string sha256(std::string_view text) {
  llvm::SHA256 hash;
  hash.update(llvm::StringRef(text));
  return llvm::toHex(hash.final(), true);
}

CodeCache::CodeCache(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || ownBuild().empty()) folder_.clear();
}

std::string CodeCache::fileOf(const std::string& name) const {
  return folder_ + "/" + sha256(ownBuild() + name) + std::string(kSuffix);
}

/// A file is the code behind its own checksum: one that was cut off or damaged is none.
std::unique_ptr<llvm::MemoryBuffer> CodeCache::find(const std::string& name) const {
  if (folder_.empty()) return nullptr;
  const std::string path = fileOf(name);
  std::ifstream file(path, std::ios::binary);
  if (!file) return nullptr;
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr std::size_t kSum = 64;
  if (content.size() <= kSum) return nullptr;
  const std::string_view code = std::string_view(content).substr(kSum);
  if (sha256(code) != std::string_view(content).substr(0, kSum)) return nullptr;
  std::error_code error;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // it is of use
  return llvm::MemoryBuffer::getMemBufferCopy(code, "kernel");
}

void CodeCache::keep(const std::string& name, const llvm::MemoryBuffer& object) {
  if (folder_.empty()) return;
  if (!std::exchange(swept_, true)) removeOld(folder_);
  // Others may write the same file: each writes its own and puts it in place whole.
  const std::string target = fileOf(name);
  const std::string own = target + "." + std::to_string(::getpid());
  std::ofstream file(own, std::ios::binary);
  const std::string_view code = object.getBuffer();
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
