// Clients that show in their first packet where they belong, and listeners whose kernel answers no others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti {

/// Four bytes that a client's first packet carries `offset` bytes from the beginning of its content.
struct KnockWord {
  std::uint32_t offset = 0;
  std::array<std::byte, 4> bytes{};
};

/// From now on the kernel answers a client of `listener` only if its first packet carries all of `words`
/// (Socket::tryKnock), and one in `oneIn`, a power of two, of the others: who is not answered costs this process
/// nothing, and its own system tries again. Replaces what was asked for before. What comes on connections that stand
/// is not looked at. False: the system cannot do it (errno), and nothing has changed.
bool answerKnocks(int listener, std::span<const KnockWord> words, std::uint32_t oneIn);

/// Undoes it. Also for a connection that was accepted meanwhile, which has inherited the filter.
void answerEverybody(int fd);

}  // namespace tutti
