#include "archive.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tutti::fuzz {
namespace {

/// A header as pack.py writes it, with the fields that are read.
std::string header(const std::string& name, const std::string& octalSize, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, octalSize.size(), octalSize);
  block[156] = type;
  block.replace(257, 5, "ustar");
  return block;
}

const std::string kEnd(1024, '\0');

std::string padded(std::string text) {
  text.resize((text.size() + 511) / 512 * 512);
  return text;
}

/// What is said of an archive that must not be read; "" if it is.
std::string refusal(const std::string& archive) {
  try {
    readArchive(archive);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Archive, GivesNamesAndBytesInItsOrder) {
  const std::string bytes = std::string("\0\r\n", 3) + std::string(600, 'x');
  const auto inputs = readArchive(header("b", "00000001133") + padded(bytes) + header("a", "00000000000") +
                                  header(std::string(100, 'n'), "00000001000") + std::string(512, 'y') + kEnd);
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].name, "b");
  EXPECT_EQ(inputs[0].text, bytes);
  EXPECT_EQ(inputs[1].text, "");
  EXPECT_EQ(inputs[2].name, std::string(100, 'n'));
  EXPECT_EQ(inputs[2].text, std::string(512, 'y'));
}

TEST(Archive, IsRefusedIfCutOffAnywhere) {
  const std::string whole = header("a", "00000001000") + std::string(512, 'y') + kEnd;
  for (const std::size_t length : {0, 511, 512, 1000, 1024, 1500}) {
    EXPECT_NE(refusal(whole.substr(0, length)).find("cut off"), std::string::npos) << length;
  }
  EXPECT_EQ(refusal(whole), "");
}

TEST(Archive, IsRefusedIfItHoldsAnythingButFiles) {
  EXPECT_EQ(refusal(header("folder", "00000000000", '5') + kEnd), "archive of inputs, byte 0: not a file");
  EXPECT_EQ(refusal(header("a", "00000000000") + header("a", "x") + kEnd), "archive of inputs, byte 512: no size");
  EXPECT_EQ(refusal(std::string(512, 'x') + kEnd), "archive of inputs, byte 0: no header of ustar");
}

}  // namespace
}  // namespace tutti::fuzz
