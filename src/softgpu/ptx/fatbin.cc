#include "softgpu/ptx/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tutti::softgpu::ptx {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint32_t kElfMagic = 0x464c457f;

// The toolkit's fatbinary_section.h has the wrapper; the other two are what nvcc 12 and 13 write.
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* unused;
};
struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t headerBytes;
  std::uint64_t bytes;  ///< of all entries
};
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t headerBytes;
  std::uint64_t bytes;  ///< of the content as it is stored
  std::uint32_t packedBytes;
  std::uint32_t unused;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t capability;
  std::uint32_t nameOffset;
  std::uint32_t nameBytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t unpackedBytes;
};
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kLz4 = 0x2000;
constexpr std::uint64_t kZstd = 0x8000;
/// No kernel's text is as long; a length beyond it is no length.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

template <class Header>
Header headerAt(const char* from) {
  Header header;
  std::memcpy(&header, from, sizeof header);
  return header;
}

std::string unpacked(const EntryHeader& entry, const char* content) {
  const bool packed = (entry.flags & (kLz4 | kZstd)) != 0;
  if (!packed) return {content, entry.bytes};
  if (entry.unpackedBytes > kMostBytes || entry.packedBytes > entry.bytes) {
    throw ImageError{"the fatbin's lengths make no sense"};
  }
  std::string text(entry.unpackedBytes, '\0');
  if ((entry.flags & kZstd) != 0) {
    const std::size_t done = ZSTD_decompress(text.data(), text.size(), content, entry.packedBytes);
    if (ZSTD_isError(done) != 0 || done != text.size()) throw ImageError{"the fatbin's zstd data are damaged"};
  } else {
    const int done =
        LZ4_decompress_safe(content, text.data(), static_cast<int>(entry.packedBytes), static_cast<int>(text.size()));
    if (done < 0 || static_cast<std::size_t>(done) != text.size()) {
      throw ImageError{"the fatbin's LZ4 data are damaged"};
    }
  }
  return text;
}

/// Text in an entry ends with zeros that fill it up.
std::string withoutPadding(std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::string fromFatbin(const char* fatbin, std::size_t bytes, std::uint32_t capability) {
  const auto header = headerAt<FatbinHeader>(fatbin);
  if (header.bytes > kMostBytes || (bytes != 0 && header.headerBytes + header.bytes > bytes)) {
    throw ImageError{"the fatbin is cut off"};
  }
  const char* at = fatbin + header.headerBytes;
  const char* end = at + header.bytes;
  const char* best = nullptr;
  std::uint32_t newest = 0;
  bool newer = false;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(EntryHeader))) {
    const auto entry = headerAt<EntryHeader>(at);
    const std::uint64_t length = entry.headerBytes + entry.bytes;
    if (entry.headerBytes < sizeof(EntryHeader) - 16 || length > static_cast<std::uint64_t>(end - at)) {
      throw ImageError{"the fatbin is damaged"};
    }
    if (entry.kind == kPtx && entry.capability > capability) newer = true;
    if (entry.kind == kPtx && entry.capability <= capability && entry.capability >= newest) {
      newest = entry.capability;
      best = at;
    }
    at += length;
  }
  if (best == nullptr) {
    throw ImageError{newer ? "its PTX is for newer devices than this one: compile for compute_" +
                                 std::to_string(capability) + " or older"
                           : "it holds machine code only, and the software GPU runs PTX: compile with -gencode "
                             "arch=compute_" +
                                 std::to_string(capability) + ",code=compute_" + std::to_string(capability)};
  }
  const auto entry = headerAt<EntryHeader>(best);
  return withoutPadding(unpacked(entry, best + entry.headerBytes));
}

}  // namespace

std::string ptxOf(const void* image, std::size_t bytes, std::uint32_t capability) {
  const auto* data = static_cast<const char*>(image);
  if (data == nullptr) throw ImageError{"there is no image"};
  std::uint32_t magic = 0;
  // Text may be shorter than a magic number.
  for (std::size_t i = 0; i < sizeof magic && (bytes == 0 || i < bytes); ++i) {
    magic |= static_cast<std::uint32_t>(static_cast<unsigned char>(data[i])) << (8 * i);
    if (bytes == 0 && data[i] == '\0') break;
  }
  if (magic == kWrapperMagic) {
    const auto wrapper = headerAt<Wrapper>(data);
    return ptxOf(wrapper.data, 0, capability);
  }
  if (magic == kFatbinMagic) {
    if (bytes != 0 && bytes < sizeof(FatbinHeader)) throw ImageError{"the fatbin is cut off"};
    return fromFatbin(data, bytes, capability);
  }
  if (magic == kElfMagic) {
    throw ImageError{
        "it is machine code (a cubin), and the software GPU runs PTX: compile with -gencode "
        "arch=compute_" +
        std::to_string(capability) + ",code=compute_" + std::to_string(capability)};
  }
  return bytes == 0 ? std::string(data) : withoutPadding(std::string(data, bytes));
}

}  // namespace tutti::softgpu::ptx
