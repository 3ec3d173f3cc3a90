// Code that is kept on disk.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

namespace fs = std::filesystem;

class PtxCodeCache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ptx-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// What the kernel `name` stores; it is read anew, with this folder.
  std::vector<std::uint64_t> stored(const std::string& name) {
    static const std::string kText =
        moduleHead() + kernelText("one", "st.global.u64 [%out], 1;") + kernelText("two", "st.global.u64 [%out], 2;");
    Program program(kText.c_str(), 0, folder_.c_str());
    EXPECT_NE(program.get(), nullptr) << program.why();
    return program.run(name, {}, {}, 1);
  }
  std::set<fs::path> files() const {
    std::set<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_)) all.insert(entry.path());
    return all;
  }

  std::string folder_;
};
using Result = std::vector<std::uint64_t>;

TEST_F(PtxCodeCache, ServesTheNextProgram) {
  EXPECT_EQ(stored("one"), Result{1});
  const std::set<fs::path> ofOne = files();
  ASSERT_EQ(ofOne.size(), 1u);
  EXPECT_EQ(stored("two"), Result{2});
  std::set<fs::path> both = files();
  ASSERT_EQ(both.size(), 2u) << "each kernel has a file";
  both.erase(*ofOne.begin());
  // With each other's code, which is valid: what is kept is what runs.
  fs::copy_file(*both.begin(), *ofOne.begin(), fs::copy_options::overwrite_existing);
  EXPECT_EQ(stored("one"), Result{2});
}

TEST_F(PtxCodeCache, FilesThatAreDamagedAreMadeAgain) {
  EXPECT_EQ(stored("one"), Result{1});
  const fs::path file = *files().begin();
  const auto whole = fs::file_size(file);
  for (const std::uintmax_t size : {std::uintmax_t{0}, std::uintmax_t{10}, whole / 2}) {
    fs::resize_file(file, size);
    EXPECT_EQ(stored("one"), Result{1}) << size;
    EXPECT_EQ(fs::file_size(file), whole) << size;
  }
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('!');
  EXPECT_EQ(stored("one"), Result{1});
}

TEST_F(PtxCodeCache, WhatNobodyNeededForAMonthIsRemoved) {
  const fs::path old = fs::path(folder_) / "old.o";
  const fs::path recent = fs::path(folder_) / "recent.o";
  for (const fs::path& file : {old, recent}) std::ofstream(file) << "code";
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(old, now - std::chrono::hours(24 * 31));
  fs::last_write_time(recent, now - std::chrono::hours(24 * 29));
  EXPECT_EQ(stored("one"), Result{1});
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
}

TEST_F(PtxCodeCache, AFolderThatCannotBeMadeIsNone) {
  std::ofstream(folder_ + "/file") << "no folder";
  folder_ += "/file/below";
  EXPECT_EQ(stored("one"), Result{1});
  folder_ = fs::path(folder_).parent_path().parent_path();
}

}  // namespace
}  // namespace tutti::softgpu::test
