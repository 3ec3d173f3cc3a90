// Images that nvcc puts into programs: fatbins, packed or not, and the wrappers around them.
#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

/// A fatbin as `fatbinary` writes it.
class Fatbin {
 public:
  static constexpr std::uint16_t kPtx = 1, kElf = 2;

  enum class Packing : std::uint64_t { None = 0, Lz4 = 0x2000, Zstd = 0x8000 };

  void add(std::uint16_t kind, std::uint32_t architecture, const std::string& payload,
           Packing packing = Packing::None) {
    const std::string content = payload + '\0';
    std::string stored = packing == Packing::None ? content : packed(content, packing);
    const auto packedBytes = static_cast<std::uint32_t>(packing == Packing::None ? 0 : stored.size());
    stored.resize((stored.size() + 7) / 8 * 8);
    put<std::uint16_t>({kind, 0x0101});
    put<std::uint32_t>({64});
    put<std::uint64_t>({stored.size()});
    put<std::uint32_t>({packedBytes, 0});
    put<std::uint16_t>({3, 8});
    put<std::uint32_t>({architecture, 0, 0});
    put<std::uint64_t>({0x11 | static_cast<std::uint64_t>(packing), 0, packedBytes == 0 ? 0 : content.size()});
    entries_ += stored;
  }
  std::string bytes() const {
    std::string head(16, '\0');
    const std::uint32_t magic = 0xba55ed50;
    const std::uint16_t version = 1, size = 16;
    const std::uint64_t rest = entries_.size();
    std::memcpy(head.data(), &magic, 4);
    std::memcpy(head.data() + 4, &version, 2);
    std::memcpy(head.data() + 6, &size, 2);
    std::memcpy(head.data() + 8, &rest, 8);
    return head + entries_;
  }

 private:
  static std::string packed(const std::string& content, Packing packing) {
    std::string room(content.size() + 1024, '\0');
    if (packing == Packing::Zstd) {
      room.resize(ZSTD_compress(room.data(), room.size(), content.data(), content.size(), 3));
    } else {
      room.resize(static_cast<std::size_t>(LZ4_compress_default(
          content.data(), room.data(), static_cast<int>(content.size()), static_cast<int>(room.size()))));
    }
    return room;
  }
  template <typename T>
  void put(std::initializer_list<T> values) {
    for (const T value : values) entries_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  std::string entries_;
};

std::string numbered(int number, const std::string& target) {
  return ".version 8.3\n.target " + target + "\n.address_size 64\n" +
         kernelText("stores", "st.global.u64 [%out], " + std::to_string(number) + ";");
}

TEST(PtxImage, OfAFatbinTheNewestThatTheDeviceRunsIsTaken) {
  Fatbin fatbin;
  fatbin.add(Fatbin::kElf, 90,
             "\x7f"
             "ELF and no more");
  fatbin.add(Fatbin::kPtx, 70, numbered(70, "sm_70"));
  fatbin.add(Fatbin::kPtx, 90, numbered(90, "sm_90"));
  fatbin.add(Fatbin::kPtx, 80, numbered(80, "sm_80"));
  fatbin.add(Fatbin::kPtx, 120, numbered(120, "sm_120"));
  const std::string bytes = fatbin.bytes();
  Program program(bytes.data(), bytes.size());
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.run("stores", {}, {}, 1), std::vector<std::uint64_t>{90});
  Program ofUnknownSize(bytes.data());
  ASSERT_NE(ofUnknownSize.get(), nullptr) << ofUnknownSize.why();
  EXPECT_EQ(ofUnknownSize.run("stores", {}, {}, 1), std::vector<std::uint64_t>{90});
}

TEST(PtxImage, PackedTextIsUnpacked) {
  for (const Fatbin::Packing packing : {Fatbin::Packing::Lz4, Fatbin::Packing::Zstd}) {
    Fatbin fatbin;
    fatbin.add(Fatbin::kPtx, 80, numbered(8, "sm_80"), packing);
    const std::string bytes = fatbin.bytes();
    Program program(bytes.data(), bytes.size());
    ASSERT_NE(program.get(), nullptr) << program.why();
    EXPECT_EQ(program.run("stores", {}, {}, 1), std::vector<std::uint64_t>{8});
  }
}

TEST(PtxImage, PackedTextThatIsDamagedIsRefused) {
  for (const Fatbin::Packing packing : {Fatbin::Packing::Lz4, Fatbin::Packing::Zstd}) {
    Fatbin fatbin;
    fatbin.add(Fatbin::kPtx, 80, numbered(8, "sm_80"), packing);
    std::string bytes = fatbin.bytes();
    bytes.replace(16 + 64, 40, 40, '\xff');
    const Program program(bytes.data(), bytes.size());
    EXPECT_EQ(program.get(), nullptr);
    EXPECT_TRUE(names(program.why(), "damaged")) << program.why();
  }
}

TEST(PtxImage, TheWrapperOfAProgramLeadsToItsFatbin) {
  Fatbin fatbin;
  fatbin.add(Fatbin::kPtx, 80, numbered(80, "sm_80"));
  const std::string bytes = fatbin.bytes();
  const struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void* fatbin;
    const void* unused = nullptr;
  } wrapper{.fatbin = bytes.data()};
  Program program(&wrapper);
  ASSERT_NE(program.get(), nullptr) << program.why();
  EXPECT_EQ(program.run("stores", {}, {}, 1), std::vector<std::uint64_t>{80});
}

TEST(PtxImage, AFatbinWithoutPtxThatTheDeviceRunsIsRefused) {
  Fatbin machineCode, tooNew, empty;
  machineCode.add(Fatbin::kElf, 90,
                  "\x7f"
                  "ELF and no more");
  tooNew.add(Fatbin::kPtx, 120, numbered(120, "sm_120"));
  for (const Fatbin& fatbin : {machineCode, tooNew, empty}) {
    const std::string bytes = fatbin.bytes();
    const Program program(bytes.data(), bytes.size());
    EXPECT_EQ(program.get(), nullptr);
    EXPECT_TRUE(names(program.why(), "PTX")) << program.why();
  }
}

TEST(PtxImage, AFatbinThatIsCutShortIsRefused) {
  Fatbin fatbin;
  fatbin.add(Fatbin::kPtx, 80, numbered(80, "sm_80"));
  const std::string bytes = fatbin.bytes();
  for (const std::size_t size :
       {std::size_t{4}, std::size_t{16}, std::size_t{40}, std::size_t{100}, bytes.size() / 2}) {
    const std::string cut = bytes.substr(0, size);
    const Program program(cut.data(), cut.size());
    EXPECT_EQ(program.get(), nullptr) << size;
    EXPECT_FALSE(program.why().empty()) << size;
  }
}

}  // namespace
}  // namespace tutti::softgpu::test
