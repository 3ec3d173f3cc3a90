// Files that a setting names: content for regular files, and an answer at once for everything else.
#include "base/user_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/dl.h"
#include "base/environment.h"
#include "base/fd.h"

namespace tutti {
namespace {

/// A folder of the test's own.
class UserFiles : public testing::Test {
 protected:
  UserFiles() { std::filesystem::create_directories(folder_); }
  ~UserFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string fifo(const std::string& name) const {
    EXPECT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    return path(name);
  }

 private:
  std::string folder_ = testing::TempDir() + "tutti-user-files-" + std::to_string(::getpid());
};

TEST_F(UserFiles, AreReadWhole) {
  const std::string text = std::string(200'000, 'x') + '\0' + "end";
  const UserFile file = readUserFile(write("a", text), text.size());
  EXPECT_TRUE(file.ok()) << file.why;
  EXPECT_EQ(file.text, text);
  EXPECT_TRUE(readUserFile(write("empty", ""), 0).ok());
}

TEST_F(UserFiles, OfMoreThanTheBoundAreRefused) {
  const UserFile file = readUserFile(write("a", std::string(101, 'x')), 100);
  EXPECT_EQ(file.trouble, FileTrouble::TooLarge);
  EXPECT_EQ(file.why, "it has more than 100 bytes; is it the file that is meant?");
  EXPECT_TRUE(readUserFile(path("a"), 101).ok());
  ASSERT_EQ(::truncate(path("a").c_str(), off_t{1} << 32), 0) << "a hole of 4 GiB";
  EXPECT_EQ(readUserFile(path("a"), 1 << 20).trouble, FileTrouble::TooLarge);
}

TEST_F(UserFiles, OfProcHaveNoSizeAndAreBoundedAllTheSame) {
  EXPECT_NE(readUserFile("/proc/self/status", 1 << 20).text.find("Pid:"), std::string::npos);
  EXPECT_EQ(readUserFile("/proc/self/status", 10).trouble, FileTrouble::TooLarge);
}

TEST_F(UserFiles, ThatAreNoFilesAreNamedUnread) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  ASSERT_LT(path("socket").size(), sizeof(at.sun_path));
  std::strcpy(at.sun_path, path("socket").c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
  const std::pair<std::string, std::string> all[] = {
      {path(""), "a directory"}, {fifo("fifo"), "a FIFO"}, {"/dev/zero", "a device"}, {path("socket"), "a socket"}};
  for (const auto& [name, kind] : all) {
    const UserFile file = readUserFile(name, 1 << 20);
    EXPECT_EQ(file.trouble, FileTrouble::NotAFile) << name;
    EXPECT_EQ(file.why, "it is " + kind + "; name a regular file");
    EXPECT_EQ(kindOfNoFile(name), kind);
  }
}

TEST_F(UserFiles, ThatCannotBeOpenedSayWhyAndWhatToDo) {
  EXPECT_EQ(readUserFile(path("none"), 1).trouble, FileTrouble::Missing);
  EXPECT_EQ(readUserFile(path("none"), 1).why, "it cannot be opened: No such file or directory (2); check the path");
  EXPECT_EQ(readUserFile(write("a", "") + "/b", 1).trouble, FileTrouble::Missing);
  EXPECT_EQ(readUserFile(path(std::string(300, 'x')), 1).trouble, FileTrouble::Unreadable);
  EXPECT_EQ(kindOfNoFile(path("none")), "");
  if (::geteuid() == 0) return;  // who may read everything
  ASSERT_EQ(::chmod(path("a").c_str(), 0), 0);
  EXPECT_EQ(readUserFile(path("a"), 1).why,
            "it cannot be opened: Permission denied (13); give this user the right to read it");
}

TEST_F(UserFiles, OfSettingsThatCannotBeUsedAreToldAndCountAsEmpty) {
  const std::string usable = write("usable", "A=1\n");
  for (const std::string& bad : {path(""), fifo("fifo"), std::string("/dev/zero"), path("none"),
                                 write("huge", "A=2\n" + std::string(2 << 20, '#'))}) {
    const MapEnv real(Settings{{"NCCL_CONF_FILE", bad}});
    const LayeredEnv env(real, usable);
    EXPECT_EQ(env.get("A"), "1");
    ASSERT_EQ(env.unusableFiles().size(), 1U) << bad;
    EXPECT_EQ(env.unusableFiles()[0].find("The settings file " + bad + " (NCCL_CONF_FILE) is ignored: it "), 0U)
        << env.unusableFiles()[0];
  }
}

TEST_F(UserFiles, OfSettingsInTheirUsualPlacesMayBeMissingButNotBroken) {
  const MapEnv real(Settings{{"HOME", path("")}});
  EXPECT_TRUE(LayeredEnv(real, path("none")).unusableFiles().empty());
  ASSERT_EQ(::mkdir(path(".nccl.conf").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(path("nccl.conf").c_str(), 0700), 0);
  const LayeredEnv env(real, path("nccl.conf"));
  ASSERT_EQ(env.unusableFiles().size(), 2U);
  EXPECT_EQ(env.unusableFiles()[0],
            "The settings file " + path("/.nccl.conf") + " is ignored: it is a directory; name a regular file");
}

TEST_F(UserFiles, ThatAreLoadedAreNotWaitedFor) {
  for (const std::string& bad : {path(""), fifo("fifo")}) {
    std::string why;
    EXPECT_FALSE(DlLibrary::open(bad, &why).valid());
    EXPECT_EQ(why, bad + ": it is " + std::string(kindOfNoFile(bad)) + "; name a library");
  }
}

}  // namespace
}  // namespace tutti
