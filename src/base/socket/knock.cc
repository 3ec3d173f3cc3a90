#include "base/socket/knock.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <cstddef>
#include <vector>

namespace tutti {
namespace {

// Where in a TCP header what is (RFC 9293). A filter of a TCP socket is given packets from there on.
constexpr std::uint32_t kLengthByte = 12;  ///< its upper half: the header's length in words
constexpr std::uint32_t kFlagsByte = 13;
constexpr std::uint32_t kSyn = 0x02;
constexpr std::uint32_t kAck = 0x10;
constexpr std::uint32_t kWholePacket = 0xffffffff;

sock_filter statement(int code, std::uint32_t value) {
  return {static_cast<std::uint16_t>(code), 0, 0, value};
}

sock_filter jump(int code, std::uint32_t value, std::size_t ifTrue, std::size_t ifFalse) {
  return {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(ifTrue), static_cast<std::uint8_t>(ifFalse),
          value};
}

/// As the filter loads them: the first byte is the highest.
std::uint32_t loaded(const std::array<std::byte, 4>& bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

/// The last statement but one answers, the last one does not.
std::vector<sock_filter> program(std::span<const KnockWord> words, std::uint32_t oneIn) {
  const std::size_t size = 10 + 2 * words.size() + 2;
  const std::size_t answer = size - 2;
  std::vector<sock_filter> made;
  const auto toAnswer = [&] { return answer - made.size() - 1; };
  // Only who begins a connection.
  made.push_back(statement(BPF_LD | BPF_B | BPF_ABS, kFlagsByte));
  made.push_back(statement(BPF_ALU | BPF_AND | BPF_K, kSyn | kAck));
  made.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, kSyn, 0, toAnswer()));
  // Luck comes first, for a packet that is too short for a word is dropped at once.
  made.push_back(statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM)));
  made.push_back(statement(BPF_ALU | BPF_AND | BPF_K, oneIn - 1));
  made.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, 0, toAnswer(), 0));
  // x: where the content begins.
  made.push_back(statement(BPF_LD | BPF_B | BPF_ABS, kLengthByte));
  made.push_back(statement(BPF_ALU | BPF_RSH | BPF_K, 2));
  made.push_back(statement(BPF_ALU | BPF_AND | BPF_K, 0x3c));
  made.push_back(statement(BPF_MISC | BPF_TAX, 0));
  for (const KnockWord& word : words) {
    made.push_back(statement(BPF_LD | BPF_W | BPF_IND, word.offset));
    made.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, loaded(word.bytes), 0, toAnswer() + 1));
  }
  made.push_back(statement(BPF_RET | BPF_K, kWholePacket));
  made.push_back(statement(BPF_RET | BPF_K, 0));
  return made;
}

}  // namespace

bool answerKnocks(int listener, std::span<const KnockWord> words, std::uint32_t oneIn) {
  std::vector<sock_filter> filter = program(words, oneIn);
  const sock_fprog whole{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole) == 0;
}

void answerEverybody(int fd) {
  const int unused = 0;
  (void)::setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

}  // namespace tutti
